import { ZooKeeperError } from '../errors.ts'
import type { ManualWorld } from './manual-world.ts'

/** The seeds of a random suite; ZABRA_CLIENT_SEEDS sets their number. */
export const seeds = Array.from({ length: Number(process.env['ZABRA_CLIENT_SEEDS'] ?? 60) }, (_, i) => i + 1)

const CLIENT_TIMER =
  /^(backoff|heartbeat|reconnect|deadline|retry|drain|connection attempt|local expiry|close|probe|search)/

/** Tracks calls of a random test: each must settle, with a plausible result or a `ZooKeeperError`. */
export class CallTracker {
  /** Results and errors that no call may have. */
  readonly wrong: string[] = []
  readonly #pending = new Map<number, string>()
  readonly #unhandled: unknown[] = []
  readonly #note = (reason: unknown): void => void this.#unhandled.push(reason)
  #calls = 0

  constructor() {
    process.on('unhandledRejection', this.#note)
  }

  /** The calls that have not settled. */
  get pending(): string[] {
    return [...this.#pending.values()]
  }

  track(what: string, call: Promise<unknown>, isRight: (value: never) => boolean = () => true): void {
    const id = this.#calls++
    this.#pending.set(id, what)
    call.then(
      (value) => {
        this.#pending.delete(id)
        if (!isRight(value as never)) this.wrong.push(`${what}: ${plain(value)}`)
      },
      (error: unknown) => {
        this.#pending.delete(id)
        if (!(error instanceof ZooKeeperError)) this.wrong.push(`${what}: ${String((error as Error).stack)}`)
      },
    )
  }

  /** Ends the tracking. Resolves to what the clients have left behind: their timers, and rejections without a handler. */
  async leftovers(world: ManualWorld): Promise<unknown[]> {
    const timers = world.clock.pendingTimers().map(({ name }) => name)
    await new Promise((resolve) => setTimeout(resolve, 0))
    process.off('unhandledRejection', this.#note)
    return [...timers.filter((name) => CLIENT_TIMER.test(name)), ...this.#unhandled]
  }
}

const plain = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) => (typeof part === 'bigint' ? String(part) : part))
