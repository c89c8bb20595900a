import {
  ClosedError,
  MultiError,
  NoNodeError,
  SessionExpiredError,
  type CallOptions,
  type Client,
  type ErrorPolicy,
  type StateChange,
  type WriteOp,
  type WriteResult,
  type ZooKeeperError,
} from '@zabra/client/core'
import { atHorizon } from './horizon.ts'
import { LostError, type LostReason } from './lost.ts'
import { OwnNode } from './own-node.ts'
import { lossOf, situationOf } from './policy.ts'
import { keepLease, renews } from './renewal.ts'
import type { Held } from './types.ts'

/** An ephemeral znode that stands for a right. */
export interface RightNode {
  readonly path: string
  /** zxid of its creation. */
  readonly token: bigint
  /** The session that it belongs to. */
  readonly owner: bigint
}

export interface RightOptions {
  /** In messages and for observers, such as `mutex`. */
  readonly recipe: string
  readonly policy: ErrorPolicy
  /** Instead of a new watch on the znode, one that is there already. */
  readonly ownNode?: OwnNode
  /** Milliseconds that its holder waited for it, for observers. */
  readonly waitedMs?: number
  /** Why it is over when the znode has gone (default `nodeDeleted`). */
  readonly reasonWhenGone?: () => LostReason
  /** Makes the right end, instead of deleting its znode. */
  readonly giveBack?: () => Promise<void>
  /** Runs once when the right ends, however that is. */
  readonly ended?: (error: LostError) => void
}

/**
 * A right that is given back sooner needs no watch on its znode: a request and a notification less for each turn of many
 * short ones. Whoever deletes the znode before is noticed when the watch is armed.
 */
const WATCH_AFTER_MS = 10

const sentences: Readonly<Record<LostReason, string>> = {
  suspended: 'the connection to the servers was lost',
  leasePassed: 'the session could have expired by now',
  expired: 'the session has expired',
  nodeDeleted: 'somebody has deleted its znode',
  revoked: 'it was revoked',
  released: 'it was released',
  closed: 'the client was closed',
}

/** A right on an ephemeral znode: begins held, ends once, by release or by loss. */
export class Right implements Held {
  readonly #client: Client
  readonly #node: RightNode
  readonly #options: RightOptions
  readonly #controller = new AbortController()
  readonly #states: AsyncIterableIterator<StateChange>
  #leaveLease = (): void => {}
  #leaveHorizon = (): void => {}
  #cancelWatch = (): void => {}
  #givenBack: Promise<void> | undefined
  #afterRelease: (() => void)[] = []

  constructor(client: Client, node: RightNode, options: RightOptions) {
    this.#client = client
    this.#node = node
    this.#options = options
    this.#states = client.states()
    void this.#follow()
    const listener = { gone: () => this.#gone(), blind: () => this.#tell('unwatched') }
    if (options.ownNode === undefined) {
      this.#cancelWatch = client.platform.clock.after(WATCH_AFTER_MS, 'watch on what is held', () => {
        void new OwnNode(client, node.path, listener)
      })
    }
    if (renews(options.policy)) this.#leaveLease = keepLease(client)
    this.#leaveHorizon = atHorizon(client, options.policy, () => this.#check(situationOf(client, this.owner)))
    this.#tell('held', options.waitedMs)
  }

  get token(): bigint {
    return this.#node.token
  }

  get path(): string {
    return this.#node.path
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** The session that holds it. */
  get owner(): bigint {
    return this.#node.owner
  }

  /** What `assertHeld` asserts. */
  get isHeld(): boolean {
    this.#check(situationOf(this.#client, this.owner))
    return !this.signal.aborted
  }

  assertHeld(): void {
    this.#check(situationOf(this.#client, this.owner))
    if (this.signal.aborted) throw this.signal.reason
  }

  async guard<const T extends readonly WriteOp[]>(
    operations: T,
    options?: CallOptions,
  ): Promise<{ [K in keyof T]: WriteResult<T[K]> }> {
    this.assertHeld()
    try {
      const all = [{ op: 'check', path: this.path }, ...operations] as const
      const [, ...results] = await this.#client.multi<readonly WriteOp[]>(all, options)
      return results as { [K in keyof T]: WriteResult<T[K]> }
    } catch (error) {
      throw this.#guardError(error)
    }
  }

  release({ background = false }: { background?: boolean } = {}): Promise<void> {
    this.#end('released')
    this.#givenBack ??= this.#giveBack().finally(() => {
      for (const action of this.#afterRelease.splice(0)) action()
    })
    if (!background) return this.#givenBack
    this.#givenBack.catch(() => this.#tell('releaseFailed'))
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }

  /** Runs when the right has been given back, or cannot be. A lost one counts as long as its holder has not let go. */
  afterRelease(action: () => void): void {
    this.#afterRelease.push(action)
  }

  /** Another right has taken its place; there is nothing left to give back. */
  handedOver(): void {
    this.#givenBack = Promise.resolve()
    void this.release()
  }

  /** Ends it for a reason that only the recipe knows. */
  lose(reason: LostReason, cause?: unknown): void {
    this.#end(reason, cause)
  }

  async #giveBack(): Promise<void> {
    // A session that is over has taken its znodes along.
    if (lossOf('session', situationOf(this.#client, this.owner)) !== undefined) return
    const { giveBack = () => this.#client.delete(this.path, { guaranteed: true, missingOk: true }) } =
      this.#options
    try {
      await giveBack()
    } catch (error) {
      if (!(error instanceof SessionExpiredError || error instanceof ClosedError)) throw error
    }
    this.#tell('released')
  }

  /** Ends the right if a look at the situation says so. */
  #check(situation: ReturnType<typeof situationOf>, cause?: unknown): void {
    if (this.signal.aborted) return
    const reason = lossOf(this.#options.policy, situation)
    if (reason !== undefined) this.#end(reason, cause)
  }

  async #follow(): Promise<void> {
    for await (const { state, cause } of this.#states) {
      this.#check(situationOf(this.#client, this.owner, state), cause)
      if (this.signal.aborted) return
    }
    // The stream of states ends with the client, or because the right has ended.
    this.#end('closed')
  }

  #gone(): void {
    this.#end(this.#options.reasonWhenGone?.() ?? 'nodeDeleted')
  }

  #guardError(error: unknown): unknown {
    if (!(error instanceof MultiError)) return error
    const cause = error.cause as ZooKeeperError
    if (error.index > 0)
      return new MultiError(
        `The guarded operation ${error.index - 1} failed: ${cause.message}`,
        error.index - 1,
        cause,
      )
    if (!(cause instanceof NoNodeError)) return error
    this.#end(this.#options.reasonWhenGone?.() ?? 'nodeDeleted', error)
    return this.signal.reason
  }

  #end(reason: LostReason, cause?: unknown): void {
    if (this.signal.aborted) return
    const { recipe } = this.#options
    const message = `The ${recipe} ${this.path} is held no longer: ${sentences[reason]}`
    const error = new LostError(message, reason, this.token, this.path, cause)
    this.#leaveHorizon()
    this.#cancelWatch()
    this.#leaveLease()
    void this.#states.return?.()
    this.#controller.abort(error)
    if (reason !== 'released') this.#tell(`lost: ${reason}`)
    this.#options.ended?.(error)
  }

  #tell(phase: string, waitedMs?: number): void {
    const { recipe } = this.#options
    const waited = waitedMs === undefined ? {} : { waitedMs }
    try {
      this.#client.instrumentation?.recipe?.({ recipe, path: this.path, phase, ...waited })
    } catch {
      // An observer must not break what it observes.
    }
  }
}
