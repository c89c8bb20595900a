import { ErrorCode, ProtocolError, type Reader, type Writer } from '@zabra/protocol'
import { operationOf } from '../operations/table.ts'
import { runToEnd } from '../steps.ts'
import type { NotifiedWatcher } from '../watches/index.ts'
import type { ChunkedReply } from './chunked-reply.ts'
import type { ReadCaller, ReadContext } from './types.ts'

/**
 * Executes reads. Writes the body of a reply straight into the connection's buffer and returns the error number. With an error
 * other than 0 nothing is left in the buffer, except for the results of a multiRead before its failed part. Sets watches;
 * setWatches delivers its notifications before it returns.
 */
export class ReadHandlers<L extends NotifiedWatcher> {
  readonly #context: ReadContext<NotifiedWatcher>

  constructor(context: ReadContext<L>) {
    this.#context = context as unknown as ReadContext<NotifiedWatcher>
  }

  /** Executes a read, or returns a reply to write in several turns, with nothing written yet. */
  begin(op: number, body: Reader, writer: Writer, caller: ReadCaller<L>): number | ChunkedReply {
    const before = writer.length
    try {
      return operationOf(op).read(this.#context, body, writer, caller)
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      writer.truncate(before)
      return ErrorCode.MARSHALLINGERROR
    }
  }

  /** Executes a read in this turn, however long that takes. */
  execute(op: number, body: Reader, writer: Writer, caller: ReadCaller<L>): number {
    const reply = this.begin(op, body, writer, caller)
    if (typeof reply === 'number') return reply
    try {
      return runToEnd(reply.write(writer, true)) ?? ErrorCode.OK
    } finally {
      reply.dispose?.()
    }
  }
}
