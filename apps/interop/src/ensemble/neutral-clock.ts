import { setTimeout as wait } from 'node:timers/promises'
import { Client } from '../harness/client.ts'

/** Time between two requests. */
const INTERVAL_MS = 20
/** As how much time a request counts at most, with the interval before it. A machine without other work needs less. */
const MOST_MS = 30

interface NeutralClockOptions {
  /** What is asked again and again: something to which nothing is done, that takes the same programs and disk as what is judged. */
  readonly request: () => Promise<unknown>
  readonly now?: () => number
  readonly interval?: () => Promise<unknown>
}

/**
 * A clock in milliseconds that follows what the machine gets done: it goes on by at most `MOST_MS` for each neutral request. While this
 * process is held, or other programs take the processor, it is as slow as the servers that are judged by it.
 */
export class NeutralClock {
  readonly #request: () => Promise<unknown>
  readonly #now: () => number
  readonly #interval: () => Promise<unknown>
  readonly #loop: Promise<void>
  readonly #alarms = new Map<() => void, number>()
  /** The time at the last request, and when that was. */
  #counted = 0
  #countedAt: number
  #isEnding = false

  constructor({
    request,
    now = () => performance.now(),
    interval = () => wait(INTERVAL_MS),
  }: NeutralClockOptions) {
    this.#request = request
    this.#now = now
    this.#interval = interval
    this.#countedAt = now()
    this.#loop = this.#run()
  }

  /** Starts a clock by new sessions, each with a write to `path`, at a server of their own. */
  static bySessions(port: number, path: string): NeutralClock {
    return new NeutralClock({
      request: async () => {
        const client = await Client.connect(port, { timeoutMs: 30_000 })
        await client.set(path, '')
        await client.close()
      },
    })
  }

  now(): number {
    return this.#counted + Math.min(MOST_MS, this.#now() - this.#countedAt)
  }

  /** Returns a signal that aborts once the clock has gone on by so much. */
  after(ms: number): AbortSignal {
    const controller = new AbortController()
    const alarm = (): void => controller.abort()
    this.#alarms.set(alarm, this.now() + ms)
    return controller.signal
  }

  /** Ends the requests. Rejects when one has failed. */
  async end(): Promise<void> {
    this.#isEnding = true
    await this.#loop
  }

  async #run(): Promise<void> {
    while (!this.#isEnding) {
      await this.#interval()
      await this.#request()
      this.#counted = this.now()
      this.#countedAt = this.#now()
      for (const [alarm, at] of this.#alarms)
        if (at <= this.#counted) {
          this.#alarms.delete(alarm)
          alarm()
        }
    }
  }
}
