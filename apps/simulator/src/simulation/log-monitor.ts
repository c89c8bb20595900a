import type { LogLine } from '@zabra/testing'

/** The time in which lines are counted, in milliseconds. */
const WINDOW_MS = 10_000
/** The most lines with one sentence that a server logs in that time, whatever other servers and strangers do. */
const MAX_LINES = 100

/** Lines that other servers and strangers cause, not clients: servers log few of them however often they are caused. */
const LIMITED =
  /^(A connection to the|A server that no|Bringing a member|Closed the connection|Looking for a leader|Server \d+ is elected|The connection of|The leader brings|The votes of|This server is not)/

/** Reports a server that logs one sentence again and again, so that it fills the disk with its log and hides other lines. */
export class LogMonitor {
  readonly #report: (what: string) => void
  /** The times of the lines of the last `WINDOW_MS`, by server and sentence. */
  readonly #times = new Map<string, number[]>()

  constructor(report: (what: string) => void) {
    this.#report = report
  }

  /** Counts a line of a server. */
  record({ at, host, sentence }: LogLine): void {
    if (!LIMITED.test(sentence)) return
    const key = `${host}: ${sentence}`
    let times = this.#times.get(key)
    if (times === undefined) this.#times.set(key, (times = []))
    times.push(at)
    while (times[0]! < at - WINDOW_MS) times.shift()
    if (times.length <= MAX_LINES) return
    this.#report(`${key}: ${times.length} lines in ${WINDOW_MS / 1000} s, expected at most ${MAX_LINES}`)
    times.length = 0
  }
}
