import {
  BadVersionError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  utf8,
  type CallOptions,
  type Client,
  type Stat,
} from '@zabra/client/core'
import { withoutTimeout } from '@zabra/client/recipe-kit'
import { LostError, type LostReason } from '../handles/lost.ts'
import type { Explanation } from '../handles/lock-timeout.ts'
import { runAndRelease } from '../handles/run-and-release.ts'
import type { Abortable, Handle, RecipeOptions, WaitOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { uuid } from '../support/uuid.ts'
import { orAborted, withLimits, type WaitContext } from '../support/limits.ts'
import { onReconnect } from '../support/on-reconnect.ts'
import { ignoreFailure, retryInNewSession, retryUntilKnown, undefinedIfMissing } from '../support/retry.ts'
import { watchUntil } from '../support/watch.ts'
import { decodeGrant, encodeGrant, isFree, expiredGrant, type Grant } from './grant.ts'
import {
  acl,
  anything,
  checkArgument,
  checkBody,
  checkRecipe,
  object,
  parents,
  text,
  whole,
} from '../support/checks.ts'

export interface LeaseOptions extends Pick<RecipeOptions, 'acl' | 'parents'> {
  /** Name of the holder. Must be unique among running holders: a holder that asks again gets its lease again. */
  readonly holder: string
  /** Duration in milliseconds after each renewal, by the server clock. */
  readonly durationMs: number
}

/** A lease that is held. */
export interface LeaseHandle extends Handle {
  /** zxid of the grant: grows with every grant of this path, and stays the same over renewals. */
  readonly token: bigint
  readonly path: string
  /**
   * Aborts with a `LostError` when the duration has passed by the local clock, another holder has the lease, or the
   * client is closed; other holders get the lease when its duration has passed.
   */
  readonly signal: AbortSignal
  /** Throws the `LostError` unless the lease is certainly valid. */
  assertHeld(): void
  /**
   * Restarts the duration. Waits for the servers through lost connections and sessions, and rejects with a `LostError` when the
   * lease has ended, also meanwhile.
   */
  renew(): Promise<void>
  /** Releases the lease at once. */
  release(): Promise<void>
}

/** A lease that another holder has. */
interface Taken {
  /** Version of its znode. */
  readonly version: number
  /** Milliseconds until it expires, by the server clock; its holder may renew it before. */
  readonly leftMs: number
}

/**
 * Ownership for a limited time that needs no session. Only server time decides whether a lease has expired: the mtime of
 * its znode against the time of a transaction made now.
 */
export class Lease {
  readonly path: string
  readonly #client: Client
  readonly #options: LeaseOptions

  constructor(client: Client, path: string, options: LeaseOptions) {
    checkRecipe('Lease', client, path, options, { acl, parents, holder: text, durationMs: anything })
    checkArgument('Lease', 'options', options, object)
    checkArgument('Lease', 'holder', options.holder, text)
    const { durationMs } = options
    checkArgument('Lease', 'durationMs', durationMs, ['a whole number of milliseconds from 1', whole(1)])
    this.#client = withoutTimeout(client).unordered()
    this.path = path
    this.#options = options
  }

  /** Waits until no other holder has the lease, and takes it. */
  acquire(options: WaitOptions = {}): Promise<LeaseHandle> {
    return withLimits(this.#client, options, this.#waiting, async (signal) => {
      for (;;) {
        const taken = await retryInNewSession(this.#client, () => this.#tryAcquire(signal))
        if ('release' in taken) return taken
        await this.#waitForChange(taken, signal)
      }
    })
  }

  /** Takes the lease, or returns undefined if another holder has it. */
  tryAcquire(options: WaitOptions = {}): Promise<LeaseHandle | undefined> {
    return withLimits(this.#client, options, this.#waiting, async (signal) => {
      const taken = await retryInNewSession(this.#client, () => this.#tryAcquire(signal))
      return 'release' in taken ? taken : undefined
    })
  }

  /** Runs the body while holding the lease, then releases it. Rejects with an `AggregateError` when both fail. */
  async run<T>(body: (held: LeaseHandle) => Promise<T>, options?: WaitOptions): Promise<T> {
    checkBody(body)
    const held = await this.acquire(options)
    return runAndRelease(
      () => body(held),
      () => held.release(),
    )
  }

  async #tryAcquire(signal: AbortSignal | undefined): Promise<LeaseHandle | Taken> {
    const client = this.#client
    const { holder, durationMs } = this.#options
    const grant: Grant = { holder, durationMs, mark: uuid(client) }
    for (;;) {
      throwIfAborted(signal, this.path)
      const since = client.platform.clock.monotonic()
      const attempt = tryTake(client, this.path, grant, { ...this.#options, signal })
      const stat = await orAborted(attempt, signal, this.#waiting).catch((error: unknown) => {
        if (signal?.aborted) this.#giveBack(attempt, grant)
        throw error
      })
      if (stat === 'again') continue
      if ('leftMs' in stat) return stat
      const held = new TimedLease(client, this.path, grant, stat, since)
      // The grant may have expired before its reply arrived; then try again.
      if (!held.signal.aborted) return held
    }
  }

  /** A grant that is written for a caller that has gone would keep others out for its duration. */
  #giveBack(attempt: ReturnType<typeof tryTake>, grant: Grant): void {
    const release = async (): Promise<void> => {
      const stat = await attempt
      if (stat === 'again' || 'leftMs' in stat) return
      await new TimedLease(this.#client, this.path, grant, stat, -Infinity).release()
    }
    ignoreFailure(release())
  }

  /** Waits until the holder has written, or its lease has expired. */
  async #waitForChange({ version, leftMs }: Taken, signal: AbortSignal | undefined): Promise<void> {
    const { clock } = this.#client.platform
    const dueAt = clock.monotonic() + leftMs
    await watchUntil(this.#client, { signal, operation: 'acquire' }, async (reader) => {
      const found = await reader.data(this.path)
      const leftNow = dueAt - clock.monotonic()
      if (found?.stat.version !== version || leftNow <= 0) return true
      reader.recheckAfter(leftNow)
      return undefined
    })
  }

  get #waiting(): WaitContext {
    const explain = async (options: CallOptions): Promise<Explanation | undefined> => {
      const { data, stat } = await this.#client.getData(this.path, options)
      const holder = decodeGrant(data)?.holder
      // A lease has no session; the znode of the lease stands for its holder.
      return holder === undefined
        ? undefined
        : {
            text: `held by ${JSON.stringify(holder)}`,
            holders: [{ path: this.path, data: utf8.encode(holder), owner: stat.ephemeralOwner }],
          }
    }
    return { operation: 'acquire', path: this.path, explain }
  }
}

/** Tries once. Returns `again` when another client wrote in between. */
async function tryTake(
  client: Client,
  path: string,
  grant: Grant,
  options: LeaseOptions & Abortable,
): Promise<Stat | Taken | 'again'> {
  const { signal } = options
  try {
    const { data, stat } = await client.getData(path, { signal })
    const now = await serverTime(client, path, options)
    const current = decodeGrant(data)
    if (!isFree(current, stat.mtime, now, grant.holder))
      return { version: stat.version, leftMs: stat.mtime + current!.durationMs + 1 - now }
    return await writeGrant(client, path, grant, stat.version)
  } catch (error) {
    if (error instanceof BadVersionError) return 'again'
    if (!(error instanceof NoNodeError)) throw error
  }
  return createGrant(client, path, grant, options)
}

/** Creates the znode with a grant, through lost connections and sessions. Returns `again` when another client did. */
async function createGrant(
  client: Client,
  path: string,
  grant: Grant,
  { acl, parents }: LeaseOptions,
): Promise<Stat | 'again'> {
  const options = {
    data: encodeGrant(grant),
    parents: parents === 'persistent' ? 'persistent' : true,
    idempotent: true,
    ...(acl === undefined ? {} : { acl }),
  } as const
  try {
    return (await retryUntilKnown(client, () => client.create(path, options))).stat
  } catch (error) {
    if (!(error instanceof NodeExistsError)) throw error
    // Perhaps this call did, in a session that has expired.
    const found = await retryInNewSession(client, () => undefinedIfMissing(client.getData(path)))
    return found !== undefined && decodeGrant(found.data)?.mark === grant.mark ? found.stat : 'again'
  }
}

/**
 * Writes a grant over a version, through lost connections and sessions. The id of the grant distinguishes a write whose reply
 * was lost from a write of another holder.
 */
async function writeGrant(client: Client, path: string, grant: Grant, version: number): Promise<Stat> {
  let isRepeated = false
  const write = async (): Promise<Stat> => {
    try {
      return await client.setData(path, encodeGrant(grant), { version, idempotent: true })
    } catch (error) {
      if (!(isRepeated && error instanceof BadVersionError)) throw error
      await client.sync(path)
      const { data, stat } = await client.getData(path)
      if (stat.version === version + 1 && decodeGrant(data)?.mark === grant.mark) return stat
      throw error
    } finally {
      isRepeated = true
    }
  }
  return retryUntilKnown(client, write)
}

/** Reads the leader's time from a znode that is created and deleted in one transaction. */
async function serverTime(
  client: Client,
  path: string,
  { acl, signal }: LeaseOptions & Abortable,
): Promise<number> {
  const probe = `${path}-${uuid(client)}`
  try {
    // Apache servers return no stat for a create in a transaction, but one for a setData.
    // Safe to repeat: nothing of it stays.
    const [, stat] = await retryUntilKnown(client, () =>
      client.multi(
        [
          { op: 'create', path: probe, ...(acl === undefined ? {} : { acl }) },
          { op: 'setData', path: probe, data: new Uint8Array(0) },
          { op: 'delete', path: probe },
        ],
        { signal },
      ),
    )
    return stat.mtime
  } catch (error) {
    if (error instanceof MultiError) throw error.cause
    throw error
  }
}

const endTexts: Partial<Record<LostReason, string>> = {
  released: 'it was released',
  closed: 'the client was closed',
}

class TimedLease implements LeaseHandle {
  readonly token: bigint
  readonly path: string
  readonly #client: Client
  readonly #grant: Grant
  readonly #controller = new AbortController()
  #version: number
  #expiresAt = 0
  #cancel = (): void => {}
  #unsubscribe: () => void
  #released: Promise<void> | undefined
  /** Serialises the writes: each is made over the version of the one before it. */
  #pending: Promise<unknown> = Promise.resolve()

  constructor(client: Client, path: string, grant: Grant, stat: Stat, since: number) {
    this.#client = withoutTimeout(client)
    this.path = path
    this.#grant = grant
    this.token = stat.mzxid
    this.#version = stat.version
    this.#unsubscribe = onReconnect(client, (over) => {
      if (over) this.#end('closed')
    })
    this.#extend(since)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  assertHeld(): void {
    if (this.#client.platform.clock.monotonic() >= this.#expiresAt) this.#end('leasePassed')
    if (this.signal.aborted) throw this.signal.reason
  }

  async renew(): Promise<void> {
    const renewed = this.#afterOthers(() => this.#renew())
    try {
      await orAborted(renewed, this.signal, { operation: 'renew', path: this.path })
    } catch (error) {
      this.assertHeld()
      throw error
    }
  }

  async #renew(): Promise<void> {
    this.assertHeld()
    // The local clock starts before the request is sent, so it never ends later than the server's.
    const since = this.#client.platform.clock.monotonic()
    const renewed = { ...this.#grant, mark: uuid(this.#client) }
    try {
      this.#version = (await writeGrant(this.#client, this.path, renewed, this.#version)).version
    } catch (error) {
      if (!(error instanceof BadVersionError || error instanceof NoNodeError)) throw error
      this.#end(error instanceof NoNodeError ? 'nodeDeleted' : 'revoked', error)
      this.assertHeld()
    }
    // A lease that has ended here meanwhile must not keep others out for another duration.
    if (this.signal.aborted && this.#released === undefined) ignoreFailure(this.#writeReleased())
    this.assertHeld()
    this.#extend(since)
  }

  #afterOthers<T>(write: () => Promise<T>): Promise<T> {
    const written = this.#pending.then(write)
    this.#pending = written.catch(() => {})
    return written
  }

  release(): Promise<void> {
    this.#end('released')
    this.#released ??= this.#afterOthers(() => this.#writeReleased())
    return this.#released
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }

  /**
   * Keeps the znode and writes a lease with a duration of 0. If the znode were deleted, its versions would
   * restart, and a delayed release could end the lease of another holder.
   */
  async #writeReleased(): Promise<void> {
    const given = encodeGrant(expiredGrant(this.#grant))
    try {
      await retryUntilKnown(this.#client, () =>
        this.#client.setData(this.path, given, { version: this.#version }),
      )
    } catch (error) {
      // Done by an earlier attempt, or another holder has the lease already.
      if (!(error instanceof BadVersionError || error instanceof NoNodeError)) throw error
    }
  }

  #extend(since: number): void {
    const { clock } = this.#client.platform
    this.#expiresAt = since + this.#grant.durationMs
    this.#cancel()
    const left = this.#expiresAt - clock.monotonic()
    if (left <= 0) return this.#end('leasePassed')
    this.#cancel = clock.after(left, 'end of a lease', () => this.#end('leasePassed'))
  }

  #end(reason: LostReason, cause?: unknown): void {
    if (this.signal.aborted) return
    this.#cancel()
    this.#unsubscribe()
    const message = `The lease ${this.path} is no longer held: ${endTexts[reason] ?? 'its time has passed, or another client has it'}`
    this.#controller.abort(new LostError(message, reason, this.token, this.path, cause))
  }
}
