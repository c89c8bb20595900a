import {
  BadVersionError,
  MultiError,
  NodeExistsError,
  NoNodeError,
  RecoverableError,
  UsageError,
  type Client,
  type Stat,
} from '@zabra/client/core'
import { LostError, type LostReason } from '../handles/lost.ts'
import type { Abortable, RecipeOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { uuid } from '../support/uuid.ts'
import { isFinished, isAmbiguous, retryInNewSession } from '../support/retry.ts'
import { decodeGrant, encodeGrant, isFree, expiredGrant, type Grant } from './grant.ts'

export interface LeaseOptions extends Abortable, Pick<RecipeOptions, 'acl' | 'parents'> {
  /** Who wants it. Two that run at once must not have one name: a holder that asks again gets it again. */
  readonly holder: string
  /** Milliseconds for which it is had, by the clock of the servers, from each renewal. */
  readonly durationMs: number
}

/** Ownership for a time, which no session has to keep alive. */
export interface Lease extends AsyncDisposable {
  /** zxid of the grant: grows with every grant of this path, and stays over renewals. */
  readonly token: bigint
  readonly path: string
  /** Aborts with a `LostError` when the time has passed by the clock of this process, or somebody else has it. */
  readonly signal: AbortSignal
  /** Throws the `LostError` unless the time has surely not passed. */
  assertHeld(): void
  /** Makes the time begin anew. Rejects with a `LostError` when it is too late, a `RecoverableError` when nobody knows. */
  renew(): Promise<void>
  /** Lets others have it at once. */
  release(): Promise<void>
}

/**
 * Takes a lease if nobody else has it, else gives undefined. Whether the one before is over is judged by the clock of
 * the servers alone: by the time at which it was written against the time of a transaction made now.
 */
export async function lease(client: Client, path: string, options: LeaseOptions): Promise<Lease | undefined> {
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
      // By the time one hears of a grant it may be over; then the next one is asked for.
      if (!got.signal.aborted) return got
    }
    throwIfAborted(signal, path)
  }
}

/** One try. `again` when somebody came between. */
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
    const made = await client.create(path, encodeGrant(grant), {
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

/** Writes a grant over a version. Its mark tells a write whose reply was lost from one of somebody else. */
async function writeGrant(client: Client, path: string, grant: Grant, version: number): Promise<Stat> {
  try {
    return await client.setData(path, encodeGrant(grant), { version })
  } catch (error) {
    if (!(error instanceof RecoverableError) || !error.maybeApplied) throw error
    await client.sync(path)
    const { data, stat } = await client.getData(path)
    if (stat.version === version + 1 && decodeGrant(data)?.mark === grant.mark) return stat
    if (stat.version !== version)
      throw new BadVersionError(`lease ${path}: somebody else was faster`, 'BAD_VERSION', { path })
    throw error
  }
}

/** The time of the leader, from a znode that is made and removed in one transaction. */
async function serverTime(client: Client, path: string, { acl, signal }: LeaseOptions): Promise<number> {
  const probe = `${path}-${uuid(client)}`
  try {
    // Apache's servers tell no Stat of a create in a transaction, but one of a write.
    const [, stat] = await client.multi(
      [
        { op: 'create', path: probe, ...(acl === undefined ? {} : { acl }) },
        { op: 'setData', path: probe, data: new Uint8Array(0) },
        { op: 'delete', path: probe },
      ],
      signal === undefined ? {} : { signal },
    )
    return stat.mtime
  } catch (error) {
    if (error instanceof MultiError) throw error.cause
    throw error
  }
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
  #released: Promise<void> | undefined

  constructor(client: Client, path: string, grant: Grant, stat: Stat, since: number) {
    this.#client = client
    this.path = path
    this.#grant = grant
    this.token = stat.mzxid
    this.#version = stat.version
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
    // Nobody counts from later than this.
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
   * Leaves the znode, as a lease of no time. Deleted, it would begin anew with versions that it has had, and a release that
   * arrives late would end the lease of somebody else.
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
        // Done by an earlier try, or somebody else has it already.
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
    const message = `The lease ${this.path} is held no longer: ${reason === 'released' ? 'it was released' : 'its time has passed, or somebody else has it'}`
    this.#controller.abort(new LostError(message, reason, this.token, this.path, cause))
  }
}
