import {
  BadVersionError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  ZooKeeperError,
  UsageError,
  type Client,
  type Stat,
} from '@zabra/client/core'
import { LostError, type LostReason } from '../handles/lost.ts'
import type { Abortable, RecipeOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { uuid } from '../support/uuid.ts'
import { onReconnect } from '../support/on-reconnect.ts'
import { isFinished, isAmbiguous, retryInNewSession, retryUntilKnown } from '../support/retry.ts'
import { decodeGrant, encodeGrant, isFree, expiredGrant, type Grant } from './grant.ts'

export interface LeaseOptions extends Abortable, Pick<RecipeOptions, 'acl' | 'parents'> {
  /** Name of the holder. Must be unique among running holders: a holder that asks again gets its lease again. */
  readonly holder: string
  /** Duration in milliseconds after each renewal, by the server clock. */
  readonly durationMs: number
}

/** Ownership for a limited time that needs no session. */
export interface Lease extends AsyncDisposable {
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
   * Restarts the duration. Rejects with a `LostError` when the lease has ended, with a retryable error when the
   * outcome is unknown.
   */
  renew(): Promise<void>
  /** Releases the lease at once. */
  release(): Promise<void>
}

/**
 * Takes the lease, or returns undefined if another holder has it. Only server time decides whether the previous
 * lease has expired: the mtime of its znode against the time of a transaction made now.
 */
export async function lease(of: Client, path: string, options: LeaseOptions): Promise<Lease | undefined> {
  const client = of.unordered()
  const { holder, durationMs, signal } = options
  if (!(Number.isSafeInteger(durationMs) && durationMs > 0)) {
    throw new UsageError(`Expected a whole number of milliseconds from 1 up, got ${durationMs}`, { path })
  }
  const grant: Grant = { holder, durationMs, mark: uuid(client) }
  for (;;) {
    const since = client.platform.clock.monotonic()
    const stat = await tryTake(client, path, grant, options)
    if (stat === 'taken') return undefined
    if (stat !== 'again') {
      const got = new TimedLease(client, path, grant, stat, since)
      // The grant may have expired before its reply arrived; then try again.
      if (!got.signal.aborted) return got
    }
    throwIfAborted(signal, path)
  }
}

/** Tries once. Returns `again` when another client wrote in between. */
async function tryTake(
  client: Client,
  path: string,
  grant: Grant,
  options: LeaseOptions,
): Promise<Stat | 'taken' | 'again'> {
  const { acl, parents, signal } = options
  const call = signal === undefined ? {} : { signal }
  try {
    const { data, stat } = await client.getData(path, call)
    const now = await serverTime(client, path, options)
    if (!isFree(decodeGrant(data), stat.mtime, now, grant.holder)) return 'taken'
    return await writeGrant(client, path, grant, stat.version)
  } catch (error) {
    if (error instanceof BadVersionError) return 'again'
    if (!(error instanceof NoNodeError)) throw error
  }
  try {
    const made = await client.create(path, {
      data: encodeGrant(grant),
      ...call,
      parents: parents === 'persistent' ? 'persistent' : true,
      idempotent: true,
      ...(acl === undefined ? {} : { acl }),
    })
    return made.stat
  } catch (error) {
    if (error instanceof NodeExistsError) return 'again'
    throw error
  }
}

/**
 * Writes a grant over a version. The id of the grant tells a write whose reply was lost from a write of another
 * holder.
 */
async function writeGrant(client: Client, path: string, grant: Grant, version: number): Promise<Stat> {
  try {
    return await client.setData(path, encodeGrant(grant), { version })
  } catch (error) {
    if (!ZooKeeperError.is(error) || !error.retryable || !error.maybeApplied) throw error
    await client.sync(path)
    const { data, stat } = await client.getData(path)
    if (stat.version === version + 1 && decodeGrant(data)?.mark === grant.mark) return stat
    if (stat.version !== version)
      throw new BadVersionError(`lease ${path}: another client wrote first`, 'BAD_VERSION', { path })
    throw error
  }
}

/** Reads the leader's time from a znode that is created and deleted in one transaction. */
async function serverTime(client: Client, path: string, { acl, signal }: LeaseOptions): Promise<number> {
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
        signal === undefined ? {} : { signal },
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

class TimedLease implements Lease {
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

  constructor(client: Client, path: string, grant: Grant, stat: Stat, since: number) {
    this.#client = client
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
    this.assertHeld()
    // The local clock starts before the request is sent, so it never ends later than the server's.
    const since = this.#client.platform.clock.monotonic()
    const renewed = { ...this.#grant, mark: uuid(this.#client) }
    try {
      this.#version = (await writeGrant(this.#client, this.path, renewed, this.#version)).version
    } catch (error) {
      if (!(error instanceof BadVersionError || error instanceof NoNodeError)) throw error
      this.#end(error instanceof NoNodeError ? 'nodeDeleted' : 'revoked', error)
    }
    this.assertHeld()
    this.#extend(since)
  }

  release(): Promise<void> {
    this.#end('released')
    this.#released ??= this.#writeReleased()
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
    for (;;) {
      try {
        await retryInNewSession(this.#client, () =>
          this.#client.setData(this.path, given, { version: this.#version }),
        )
        return
      } catch (error) {
        // Done by an earlier attempt, or another holder has the lease already.
        if (error instanceof BadVersionError || error instanceof NoNodeError) return
        if (!isAmbiguous(error) || isFinished(this.#client)) throw error
      }
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
