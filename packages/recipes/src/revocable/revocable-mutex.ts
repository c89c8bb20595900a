import type { Bytes } from '@zabra/client/core'
import { LostError } from '../held/lost.ts'
import { OwnNode } from '../held/own-node.ts'
import { Right } from '../held/right.ts'
import type { AcquireOptions, Held } from '../held/types.ts'
import type { Place } from '../line/line.ts'
import type { Companion, TurnOptions } from '../line/turn.ts'
import { Mutex } from '../mutex/mutex.ts'
import { readRequest, type RevokeRequest } from './request.ts'

export interface RevocableHeld extends Held {
  /** Resolves when somebody asks for the right back. It stays held until it is released. Never rejects. */
  readonly revokeRequested: Promise<RevokeRequest>
}

/**
 * A mutex whose holder can be asked to let go, and from whom it can be taken after a while: see `revoke`. A waiter that is
 * asked leaves the line: its `acquire` rejects with a `LostError` of reason `revoked`.
 */
export class RevocableMutex extends Mutex {
  readonly #watches = new Map<string, RevocationWatch>()
  readonly #requests = new WeakMap<AbortSignal, Promise<RevokeRequest>>()

  override async acquire(options?: AcquireOptions): Promise<RevocableHeld> {
    return this.#revocable(await super.acquire(options))
  }

  override async tryAcquire(options?: AcquireOptions): Promise<RevocableHeld | undefined> {
    const held = await super.tryAcquire(options)
    return held === undefined ? undefined : this.#revocable(held)
  }

  override run<T>(body: (held: RevocableHeld) => Promise<T>, options?: AcquireOptions): Promise<T> {
    return super.run((held) => body(this.#revocable(held)), options)
  }

  protected override turn(options: AcquireOptions): TurnOptions<Right> {
    return {
      ...super.turn(options),
      accompany: (place, ring) => {
        const watch = new RevocationWatch(this, place, ring)
        this.#watches.set(place.path, watch)
        return watch
      },
      ended: ({ path }) => void this.#watches.delete(path),
      grant: (place, waitedMs) => this.#grant(place, waitedMs),
    }
  }

  #grant(place: Place, waitedMs: number): Right {
    const watch = this.#watches.get(place.path) ?? new RevocationWatch(this, place, () => {})
    const right = new Right(this.client, place, {
      recipe: 'revocable mutex',
      policy: this.policy,
      waitedMs,
      ownNode: watch.node,
      reasonWhenGone: () => (watch.asked ? 'revoked' : 'nodeDeleted'),
    })
    watch.heldBy(right)
    this.#requests.set(right.signal, watch.requested)
    return right
  }

  #revocable(held: Held): RevocableHeld {
    if ('revokeRequested' in held) return held as RevocableHeld
    const revokeRequested = this.#requests.get(held.signal)!
    return {
      token: held.token,
      path: held.path,
      signal: held.signal,
      assertHeld: () => held.assertHeld(),
      guard: (operations, options) => held.guard(operations, options),
      release: (options) => held.release(options),
      [Symbol.asyncDispose]: () => held.release(),
      revokeRequested,
    }
  }
}

/** Reads what is written into one's own znode, from before it could be known to anybody. */
class RevocationWatch implements Companion {
  readonly node: OwnNode
  readonly requested: Promise<RevokeRequest>
  readonly #place: Place
  readonly #original: Bytes
  #resolve: (request: RevokeRequest) => void = () => {}
  #request: RevokeRequest | undefined

  constructor(mutex: { client: Mutex['client']; data: Bytes }, place: Place, ring: () => void) {
    this.#place = place
    this.#original = mutex.data
    this.requested = new Promise((resolve) => (this.#resolve = resolve))
    this.node = new OwnNode(mutex.client, place.path, {
      data: (data) => this.#read(data, ring),
      gone: ring,
    })
  }

  /** Somebody wants it: has said so, or has at least written into the znode before removing it. */
  get asked(): boolean {
    return this.#request !== undefined || this.node.changed
  }

  check(): void {
    if (this.#request === undefined) return
    const { path, token } = this.#place
    const why = this.#request.reason === undefined ? '' : `: ${this.#request.reason}`
    throw new LostError(`The place in line ${path} was revoked${why}`, 'revoked', token, path)
  }

  heldBy(right: Right): void {
    this.node.handOver({
      data: (data) => this.#read(data, () => {}),
      gone: () => right.lose(this.asked ? 'revoked' : 'nodeDeleted'),
    })
  }

  #read(data: Bytes, ring: () => void): void {
    if (this.#request !== undefined || same(data, this.#original)) return
    this.#request = readRequest(data)
    if (this.#request === undefined) return
    this.#resolve(this.#request)
    ring()
  }
}

const same = (a: Bytes, b: Bytes): boolean => a.length === b.length && a.every((byte, i) => byte === b[i])
