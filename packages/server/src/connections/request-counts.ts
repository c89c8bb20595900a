import { ErrorCode, errorName, OpCode } from '@zabra/protocol'

/** Op codes and errors are below this number, after `OP_OFFSET` is added and without their sign. */
const SIZE = 128
/** The lowest op code is that of the end of a session, -11. */
const OP_OFFSET = 16

/** The names of the operations that clients request, by op code. */
const names: ReadonlyMap<number, string> = new Map(
  Object.entries(OpCode)
    .filter(([, code]) => code > 0 || code === OpCode.closeSession)
    .map(([name, code]) => [code, name]),
)

/** Results by which error rates are computed: their counts are there from the begin, since `rate` does not see the first increase of a new series. */
const ALWAYS_THERE: ReadonlySet<number> = new Set([
  ErrorCode.OK,
  ErrorCode.SYSTEMERROR,
  ErrorCode.QUOTAEXCEEDED,
])

/** Counts replies by operation and result. */
export class RequestCounts {
  readonly #counts = new Float64Array(SIZE * SIZE)

  /** Counts a reply with an error number: 0 or a negative one. */
  count(type: number, err: number): void {
    const index = (type + OP_OFFSET) * SIZE - err
    if (index >= 0 && index < this.#counts.length) this.#counts[index]!++
  }

  /** Yields the counts of each operation: of successes, system errors and exceeded quotas, and of other errors that have occurred. */
  *entries(): Generator<{ readonly op: string; readonly result: string; readonly count: number }> {
    for (const [code, op] of names)
      for (let err = 0; err < SIZE; err++) {
        const count = this.#counts[(code + OP_OFFSET) * SIZE + err]!
        if (count > 0 || ALWAYS_THERE.has(-err))
          yield { op, result: errorName(ErrorCode.OK - err).toLowerCase(), count }
      }
  }
}
