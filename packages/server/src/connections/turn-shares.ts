import type { Clock } from '@zabra/runtime'

/**
 * Milliseconds of one event that the requests of one connection may take while no other connection waits. An iteration of the event
 * loop has many events: first those of all sockets that have received bytes, then the run of the connections that wait.
 */
const SHARE_MS = 3
/** Bytes of requests and replies between two looks at the clock: one costs as much as a tenth of a small request. */
const BYTES_PER_CHECK = 4096
/** What a request counts beside its own bytes and those of its reply. */
const REQUEST_BYTES = 128

/** A connection with requests that wait for a later turn. */
export interface WaitingChannel {
  /** Handles the requests that wait, until its share of the turn is spent. */
  proceed(): void
}

export interface TurnSharesOptions {
  readonly clock: Clock
  /** Runs a function in a later turn, after the I/O that is ready. */
  readonly runLater: (action: () => void) => void
  /** Returns when the current turn began, on the monotonic clock. */
  readonly turnTime: () => number
}

/**
 * Divides the time of the event loop between connections: one that has sent more than its share of a turn can handle waits, and
 * takes its next share after the connections that waited before it. The more of them wait, the shorter is a share.
 */
export class TurnShares {
  readonly #options: TurnSharesOptions
  /** In the order of their turns. */
  readonly #waiting = new Set<WaitingChannel>()
  /** Bytes since the last look at the clock. */
  #bytes = 0
  /** The connection of the last read, when the turn of that read began, and that of the first of its reads in a row. */
  #reader: WaitingChannel | undefined
  #readAt = -Infinity
  #readingSince = 0
  /** Whether a run is due: at most one in a turn, or each of them would take a share of its own. */
  #isScheduled = false
  /** When the first event of this iteration, or of this run, began that has spent its share or was costly; undefined before it. */
  #busySince: number | undefined
  /** Whether a request since the last run was costly or large, or its reply large. */
  #hasCostly = false

  constructor(options: TurnSharesOptions) {
    this.#options = options
  }

  /** Counts a request: its bytes and those of its reply. Returns whether the share of this turn is spent, which is checked for some only. */
  isSpent(bytes: number): boolean {
    this.#bytes += REQUEST_BYTES + bytes
    if (this.#bytes < BYTES_PER_CHECK) return false
    this.#bytes = 0
    if (bytes >= BYTES_PER_CHECK) this.#hasCostly = true
    // The sum over connections that all spend their share is below twice the first one.
    return this.#elapsed() >= SHARE_MS / (1 + this.#waiting.size) ** 2
  }

  /**
   * Begins to handle a read of a connection. The platform hands over up to 2 MiB of a connection in a row, as events of their own,
   * with TLS one for each record, whose length the client chooses. Reads of one connection that follow each other have one
   * share; a connection that was idle in between waits for a turn once more, at most.
   */
  beginRead(channel: WaitingChannel): void {
    const now = this.#options.turnTime()
    if (this.#reader !== channel || now - this.#readAt >= SHARE_MS) this.#readingSince = now
    this.#reader = channel
    this.#readAt = now
  }

  /** Makes the next `isSpent` look at the clock: a request costs more than its bytes, or a reply was large. */
  checkNext(): void {
    this.#bytes = BYTES_PER_CHECK
    this.#hasCostly = true
    this.#schedule()
  }

  /**
   * Returns whether a costly request may be executed in this iteration of the event loop; else its connection has to wait. Without
   * it, as many connections as send one at the same time would each take the time of one, before any other client is served.
   */
  admitsCostly(): boolean {
    const since = this.#busySince
    if (since !== undefined && this.#options.clock.monotonic() - since >= SHARE_MS / 2) return false
    this.checkNext()
    return true
  }

  /** Lets a connection proceed in a later turn. */
  wait(channel: WaitingChannel): void {
    this.#waiting.add(channel)
    this.#schedule()
  }

  remove(channel: WaitingChannel): void {
    if (this.#reader === channel) this.#reader = undefined
    this.#waiting.delete(channel)
  }

  #schedule(): void {
    this.#busySince ??= this.#options.turnTime()
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#options.runLater(() => this.#run())
  }

  #run(): void {
    if (this.#isIterationSpent()) {
      this.#busySince = -Infinity
      return this.#options.runLater(() => this.#run())
    }
    this.#reader = undefined
    this.#busySince = undefined
    let left = this.#waiting.size
    for (const channel of this.#waiting) {
      // It is added behind the others if it has to wait again.
      this.#waiting.delete(channel)
      channel.proceed()
      if (--left === 0 || this.#elapsed() >= SHARE_MS / 2) break
    }
    this.#isScheduled = false
    this.#hasCostly = false
    if (this.#waiting.size > 0) this.#schedule()
    // While some wait, costly requests that arrive are executed in runs alone, behind them.
    this.#busySince = this.#waiting.size > 0 ? -Infinity : undefined
  }

  /**
   * Whether the sockets have taken the time of this iteration before the run, which then follows in the next one. It is put off once:
   * connections that always have something to read cannot keep others waiting. Only behind a costly request, since the run may have
   * another one: an iteration more for many small ones makes them a tenth more expensive.
   */
  #isIterationSpent(): boolean {
    const since = this.#busySince
    if (!this.#hasCostly || since === undefined || since === -Infinity || this.#waiting.size === 0)
      return false
    return this.#options.clock.monotonic() - since >= SHARE_MS / 2
  }

  #elapsed(): number {
    const { clock, turnTime } = this.#options
    const turn = turnTime()
    // A turn that is not of a read has a share of its own.
    return (
      clock.monotonic() - (this.#reader !== undefined && turn === this.#readAt ? this.#readingSince : turn)
    )
  }
}
