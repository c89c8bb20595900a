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
  /** By operation and result; the row of an operation exists from its first reply on. */
  readonly #rows: (Float64Array | undefined)[] = Array.from({ length: SIZE }, () => undefined)

  /** Counts a reply with an error number: 0 or a negative one. */
  count(type: number, err: number): void {
    const [op, result] = [type + OP_OFFSET, -err]
    if (op < 0 || op >= SIZE || result < 0 || result >= SIZE) return
    const row = (this.#rows[op] ??= new Float64Array(SIZE))
    row[result]!++
  }

  /** Yields the counts of each operation: of successes, system errors and exceeded quotas, and of other errors that have occurred. */
  *entries(): Generator<{ readonly op: string; readonly result: string; readonly count: number }> {
    for (const [code, op] of names) {
      const row = this.#rows[code + OP_OFFSET]
      for (let err = 0; err < SIZE; err++) {
        const count = row?.[err] ?? 0
        if (count > 0 || ALWAYS_THERE.has(-err))
          yield { op, result: errorName(ErrorCode.OK - err).toLowerCase(), count }
      }
    }
  }
}
