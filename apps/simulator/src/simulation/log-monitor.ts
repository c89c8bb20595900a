import type { LogLine } from '@zabra/testing'
import { Repetitions, WINDOW_MS } from './repetitions.ts'

/** The most lines with one sentence that a server logs in `WINDOW_MS`, whatever other servers and strangers do. */
const MAX_LINES = 100

/** Lines that other servers and strangers cause, not clients: servers log few of them however often they are caused. */
const LIMITED =
  /^(A connection to the|A server that no|Bringing a member|Closed the connection|Looking for a leader|Server \d+ is elected|The connection of|The leader brings|The votes of|This server is not)/

/** Reports a server that logs one sentence again and again, so that it fills the disk with its log and hides other lines. */
export class LogMonitor {
  readonly #report: (what: string) => void
  readonly #lines = new Repetitions()

  constructor(report: (what: string) => void) {
    this.#report = report
  }

  /** Counts a line of a server. */
  record({ at, host, sentence }: LogLine): void {
    if (!LIMITED.test(sentence)) return
    const key = `${host}: ${sentence}`
    const count = this.#lines.add(key, at)
    if (count <= MAX_LINES) return
    this.#report(`${key}: ${count} lines in ${WINDOW_MS / 1000} s, expected at most ${MAX_LINES}`)
    this.#lines.forget(key)
  }
}
