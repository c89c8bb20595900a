import { FatalError, MultiError, type Client, type Stat, type StateChange } from '@zabra/client/core'
import { atHorizon } from '../held/horizon.ts'
import { LostError, type LostReason } from '../held/lost.ts'
import { lossOf, situationOf } from '../held/policy.ts'
import { AmbiguousResultError } from '../waiting/ambiguous.ts'
import { inBackground, isNewSession, isUnclear, throughSessions } from '../waiting/errors.ts'

/** Where a message is in its queue. */
export interface MessageAt {
  readonly item: string
  readonly claim: string
  /** Of the item, since it was claimed for this message. */
  readonly version: number
}

/**
 * An item that one consumer is at work on. `ack` when it is done; `nack`, disposal, the end of the session or of the
 * process give it back to the queue.
 */
export class Message<T> implements AsyncDisposable {
  /** What was put. */
  readonly value: T
  /** Grows with every delivery, on whatever path: hand it to what must not see work of an older delivery. */
  readonly token: bigint
  /** How often it has been delivered, this time included. */
  readonly deliveries: number
  readonly #client: Client
  readonly #at: MessageAt
  readonly #controller = new AbortController()
  readonly #states: AsyncIterableIterator<StateChange>
  readonly #owner: bigint
  readonly #settled: () => void
  /** Resolves when it is acknowledged, given back or lost. */
  readonly settled: Promise<void>
  #ending: Promise<void> | undefined
  #acked = false
  #leaveHorizon = (): void => {}

  constructor(client: Client, value: T, at: MessageAt, claim: Stat) {
    this.value = value
    this.token = claim.czxid
    this.deliveries = at.version
    this.#client = client
    this.#at = at
    this.#owner = claim.ephemeralOwner
    let settle = (): void => {}
    this.settled = new Promise((resolve) => (settle = resolve))
    this.#settled = settle
    this.#states = client.states()
    void this.#follow()
  }

  /** Name of the item: what `put` returned. */
  get id(): string {
    return this.#at.item.slice(this.#at.item.lastIndexOf('/') + 1)
  }

  /** `ack` was called, whatever came of it. */
  get isAcknowledged(): boolean {
    return this.#acked
  }

  /** Aborts with a `LostError` when somebody else may get the message: stop working on it. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /**
   * The work is done: removes the item. Rejects with a `LostError` when somebody else has got it meanwhile, and with an
   * `AmbiguousResultError` when its session ended on the way and nobody can tell any more who removed it.
   */
  ack(): Promise<void> {
    if (this.#ending !== undefined && !this.#acked) return Promise.reject(this.#lost('released'))
    this.#acked = true
    this.#ending ??= this.#end(() => this.#acknowledge())
    return this.#ending
  }

  /**
   * Gives the item back, to be delivered again: at once, or after `delayMs` for as long as this session lives; when it
   * ends earlier the item comes back earlier. Does nothing after `ack`.
   */
  async nack({ delayMs = 0 }: { readonly delayMs?: number } = {}): Promise<void> {
    this.#ending ??= this.#end(() => this.#giveBack(delayMs))
    // Whoever acknowledged it has heard what came of that.
    await (this.#acked ? this.#ending.catch(() => {}) : this.#ending)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.nack()
  }

  async #end(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } finally {
      this.#lose('released')
    }
  }

  /** Done when the item is gone and the claim has kept others away all the time. */
  async #acknowledge(): Promise<void> {
    const { item, claim, version } = this.#at
    for (let sent = false; ;) {
      try {
        await this.#client.multi([
          { op: 'delete', path: claim },
          { op: 'delete', path: item, version },
        ])
        return
      } catch (error) {
        if (error instanceof MultiError)
          throw this.#lost(this.#lossIn(this.#client.state) ?? 'nodeDeleted', error)
        if (!isUnclear(error) && !isNewSession(this.#client, error)) throw error
        sent ||= isUnclear(error)
        if (!(await throughSessions(this.#client, () => this.#isGone()))) continue
        if (this.#client.session.id === this.#owner) return
        throw sent ? this.#doubt(error) : this.#lost('expired', error)
      }
    }
  }

  #doubt(cause: unknown): AmbiguousResultError {
    const { item } = this.#at
    const message = `The session ended before it could be told whether ${item} was acknowledged by us or by somebody else`
    return new AmbiguousResultError(message, { path: item, cause, value: this.value })
  }

  async #isGone(): Promise<boolean> {
    const { item } = this.#at
    await this.#client.sync(item)
    return (await this.#client.exists(item)) === undefined
  }

  async #giveBack(delayMs: number): Promise<void> {
    if (delayMs === 0) return this.#dropClaim()
    this.#client.platform.clock.after(delayMs, 'delay of a message', () => inBackground(this.#dropClaim()))
  }

  /** Only a claim of this delivery: the item has had another version since it was claimed again. */
  async #dropClaim(): Promise<void> {
    const { item, claim, version } = this.#at
    for (;;) {
      try {
        await this.#client.multi([
          { op: 'check', path: item, version },
          { op: 'delete', path: claim },
        ])
        return
      } catch (error) {
        // Gone with its session, or by an earlier try.
        if (error instanceof MultiError || error instanceof FatalError) return
        if (!isUnclear(error)) throw error
      }
    }
  }

  async #follow(): Promise<void> {
    this.#leaveHorizon = atHorizon(this.#client, this.#client.errorPolicy, () =>
      this.#check(this.#client.state),
    )
    for await (const { state } of this.#states) this.#check(state)
    this.#lose('closed')
  }

  #check(state: StateChange['state']): void {
    const reason = this.#lossIn(state)
    if (reason !== undefined) this.#lose(reason)
  }

  #lossIn(state: StateChange['state']): LostReason | undefined {
    return lossOf(this.#client.errorPolicy, situationOf(this.#client, this.#owner, state))
  }

  #lost(reason: LostReason, cause?: unknown): LostError {
    const { item } = this.#at
    return new LostError(`The message ${item} is no longer ours (${reason})`, reason, this.token, item, cause)
  }

  #lose(reason: LostReason): void {
    if (this.signal.aborted) return
    this.#controller.abort(this.#lost(reason))
    this.#leaveHorizon()
    void this.#states.return?.()
    this.#settled()
  }
}
