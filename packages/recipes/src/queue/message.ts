import { MultiError, ZooKeeperError, type Client, type Stat, type StateChange } from '@zabra/client/core'
import { nameOf, withoutTimeout } from '@zabra/client/recipe-kit'
import { watchHorizon } from '../handles/horizon.ts'
import { LostError, type LostReason } from '../handles/lost.ts'
import { lossReason, sessionStatusOf } from '../handles/policy.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import { checkOptions, milliseconds } from '../support/checks.ts'
import { delay } from '../support/delay.ts'
import { ignoreFailure, isNewSession, isAmbiguous, pauses, retryInNewSession } from '../support/retry.ts'

const nacking = { delayMs: milliseconds }

/** The znodes of a message. */
export interface MessageLocation {
  readonly item: string
  readonly claim: string
  /** Version of the item since it was claimed for this message. */
  readonly version: number
}

/**
 * An item that one consumer processes. `ack` removes it; `nack`, disposal, the end of the session or of the
 * process return it to the queue.
 */
export class Message<T> implements AsyncDisposable {
  /** The value that was put. */
  readonly value: T
  /**
   * Fencing token: grows with every delivery on any path. Pass it to resources that must refuse work of an older
   * delivery.
   */
  readonly token: bigint
  /** Number of deliveries, this one included. */
  readonly deliveries: number
  readonly #client: Client
  readonly #location: MessageLocation
  readonly #controller = new AbortController()
  readonly #states: AsyncIterableIterator<StateChange>
  readonly #owner: bigint
  readonly #resolveSettled: () => void
  /** Resolves when the message is acknowledged, returned or lost. */
  readonly settled: Promise<void>
  #ending: Promise<void> | undefined
  #acked = false
  #unwatchHorizon = (): void => {}

  /** @internal */
  constructor(client: Client, value: T, at: MessageLocation, claim: Stat) {
    this.value = value
    this.token = claim.czxid
    this.deliveries = at.version
    this.#client = withoutTimeout(client)
    this.#location = at
    this.#owner = claim.ephemeralOwner
    let settle = (): void => {}
    this.settled = new Promise((resolve) => (settle = resolve))
    this.#resolveSettled = settle
    this.#states = client.states()
    void this.#followStates()
  }

  /** Name of the item, which `put` returns. */
  get id(): string {
    return nameOf(this.#location.item)
  }

  /** True once `ack` was called, whatever its outcome. */
  get isAcknowledged(): boolean {
    return this.#acked
  }

  /** Aborts with a `LostError` when another consumer may get the message: stop working on it. */
  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /**
   * Acknowledges the message and removes the item. Rejects with a `LostError` when another consumer has got it
   * meanwhile, and with an `AmbiguousResultError` when the session expired during the call and the item is gone.
   */
  ack(): Promise<void> {
    if (this.#ending !== undefined && !this.#acked) return Promise.reject(this.#lost('released'))
    this.#acked = true
    this.#ending ??= this.#end(() => this.#acknowledge())
    return this.#ending
  }

  /**
   * Returns the item to the queue for another delivery: at once, or after `delayMs` while this session lives; the
   * end of the session returns it earlier. Does nothing after `ack`.
   */
  async nack(options: { readonly delayMs?: number | undefined } = {}): Promise<void> {
    checkOptions('message.nack', options, nacking)
    const { delayMs = 0 } = options
    this.#ending ??= this.#end(() => this.#returnToQueue(delayMs))
    // The caller of `ack` has received its error.
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

  /** The item is gone, and the claim has kept other consumers away all the time. */
  async #acknowledge(): Promise<void> {
    const { item, claim, version } = this.#location
    const pause = pauses(this.#client)
    for (let unknown: unknown; ;) {
      try {
        await this.#client.multi([
          { op: 'delete', path: claim },
          { op: 'delete', path: item, version },
        ])
        return
      } catch (error) {
        if (error instanceof MultiError)
          throw this.#lost(this.#lossReason(this.#client.state) ?? 'nodeDeleted', error)
        if (!isAmbiguous(error) && !isNewSession(this.#client, error)) throw error
        if (isAmbiguous(error)) unknown = error
        const isGone = await retryInNewSession(this.#client, () => this.#isGone()).catch((cause: unknown) => {
          throw unknown ?? cause
        })
        if (!isGone) {
          await pause()
          continue
        }
        if (this.#client.session.id === this.#owner) return
        throw unknown === undefined ? this.#lost('expired', error) : this.#ambiguous(error)
      }
    }
  }

  #ambiguous(cause: unknown): AmbiguousResultError {
    const { item } = this.#location
    const message = `The session expired, and it is unknown whether this client or another one acknowledged ${item}`
    return new AmbiguousResultError(message, { path: item, cause, value: this.value })
  }

  async #isGone(): Promise<boolean> {
    const { item } = this.#location
    await this.#client.sync(item)
    return (await this.#client.exists(item)) === undefined
  }

  async #returnToQueue(delayMs: number): Promise<void> {
    if (delayMs === 0) return this.#deleteClaim()
    ignoreFailure(delay(this.#client, delayMs).then(() => this.#deleteClaim()))
  }

  /** Deletes only the claim of this delivery: a later claim would have changed the item's version. */
  async #deleteClaim(): Promise<void> {
    const { item, claim, version } = this.#location
    const pause = pauses(this.#client)
    for (;;) {
      try {
        await this.#client.multi([
          { op: 'check', path: item, version },
          { op: 'delete', path: claim },
        ])
        return
      } catch (error) {
        // Deleted with its session, or by an earlier attempt.
        if (error instanceof MultiError) return
        if (ZooKeeperError.is(error) && error.scope !== 'request') return
        if (!isAmbiguous(error)) throw error
        await pause()
      }
    }
  }

  async #followStates(): Promise<void> {
    this.#unwatchHorizon = watchHorizon(this.#client, this.#client.errorPolicy, () =>
      this.#check(this.#client.state),
    )
    for await (const { state } of this.#states) this.#check(state)
    this.#lose('closed')
  }

  #check(state: StateChange['state']): void {
    const reason = this.#lossReason(state)
    if (reason !== undefined) this.#lose(reason)
  }

  #lossReason(state: StateChange['state']): LostReason | undefined {
    return lossReason(this.#client.errorPolicy, sessionStatusOf(this.#client, this.#owner, state))
  }

  #lost(reason: LostReason, cause?: unknown): LostError {
    const { item } = this.#location
    return new LostError(`The message ${item} is no longer held (${reason})`, reason, this.token, item, cause)
  }

  #lose(reason: LostReason): void {
    if (this.signal.aborted) return
    this.#controller.abort(this.#lost(reason))
    this.#unwatchHorizon()
    void this.#states.return?.()
    this.#resolveSettled()
  }
}
