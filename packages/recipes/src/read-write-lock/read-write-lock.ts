import {
  UsageError,
  type CallOptions,
  type Client,
  type CreateResult,
  type ErrorPolicy,
} from '@zabra/client/core'
import { shown, withoutTimeout } from '@zabra/client/recipe-kit'
import { runAndRelease } from '../handles/run-and-release.ts'
import { EphemeralLockHandle, type HandleOptions } from '../handles/ephemeral-lock-handle.ts'
import type { LockHandle, RecipeOptions, WaitOptions } from '../handles/types.ts'
import { contendersInOrder, createParser } from '../lock-queue/contenders.ts'
import { LockQueue, createdEntry, protectionIds, entryOf, type QueueEntry } from '../lock-queue/lock-queue.ts'
import type { Participant } from '../handles/lock-timeout.ts'
import { explainQueue, readParticipants } from '../lock-queue/participants.ts'
import { entryDeleted, acquireTurn, tryAcquireTurn, type TurnOptions } from '../lock-queue/turn.ts'
import { uuid } from '../support/uuid.ts'
import { withLimits } from '../support/limits.ts'
import { isAmbiguous, pauses } from '../support/retry.ts'
import { isAlone } from './upgrade.ts'
import { checkBody, checkRecipe, recipe } from '../support/checks.ts'

const prefixes = {
  recipe: { read: '__READ__', write: '__WRIT__' },
  curator: { read: '__READ__', write: '__WRIT__' },
  kazoo: { read: '__rlock__', write: '__lock__' },
} as const
/** Recognises the contenders of all naming schemes. */
export const parseReadWrite = createParser(
  ['__WRIT__', 'write-', '__lock__'],
  ['__READ__', 'read-', '__rlock__'],
)

type Mode = 'read' | 'write'

/** The read or the write side of the lock. The methods do what those of a `Mutex` do. */
export interface LockSide {
  /** Waits for the lock, as `acquire` of a mutex does. */
  acquire(options?: WaitOptions): Promise<LockHandle>
  /** Returns undefined when there is a contender to wait for. */
  tryAcquire(options?: WaitOptions): Promise<LockHandle | undefined>
  run<T>(body: (held: LockHandle) => Promise<T>, options?: WaitOptions): Promise<T>
}

interface HeldLock {
  readonly handle: EphemeralLockHandle
  readonly entry: QueueEntry
  readonly mode: Mode
  /** True while this client itself deletes the znode. */
  isReplaced: boolean
}

/** A contender of a read/write lock. */
export interface ReadWriteParticipant extends Participant {
  readonly mode: Mode
}

/** A lock for many readers or one writer, granted in order of arrival, so that none starves. */
export class ReadWriteLock {
  readonly client: Client
  readonly path: string
  /** The shared side. */
  readonly read: LockSide
  /** The exclusive side. */
  readonly write: LockSide
  readonly #queue: LockQueue
  readonly #policy: ErrorPolicy
  readonly #options: RecipeOptions
  readonly #held = new WeakMap<LockHandle, HeldLock>()

  constructor(client: Client, path: string, options: RecipeOptions = {}) {
    checkRecipe('ReadWriteLock', client, path, options, recipe)
    this.client = withoutTimeout(client)
    this.path = path
    this.#policy = options.errorPolicy ?? client.errorPolicy
    this.#options = options
    this.#queue = new LockQueue(client, path, parseReadWrite, options)
    this.read = this.#side('read')
    this.write = this.#side('write')
  }

  /**
   * Turns a write lock into a read lock in one transaction, at the same place in the queue: waiting readers enter,
   * waiting writers stay behind. The write handle ends, and the read handle gets its token. Rejects with a
   * `LostError` when the write lock is not held or its session expired meanwhile, and a `UsageError` when it is not one
   * of this lock.
   */
  async downgrade(write: LockHandle): Promise<LockHandle> {
    const held = this.#heldLockOf(write, 'write')
    const path = this.#queue.pathOf(this.#nameAt(held.entry, 'read'))
    held.isReplaced = true
    try {
      const made = await this.#exchange(held.entry, path)
      // Waiting writers have tokens from before this znode, and must not be refused for that when their turn
      // comes.
      const entry = { ...made, token: held.entry.token }
      held.handle.markReplaced()
      return this.#grant(entry, 'read')
    } catch (error) {
      held.isReplaced = false
      void this.client.delete(path, { guaranteed: true, missingOk: true }).catch(() => {})
      if (held.handle.signal.aborted) throw held.handle.signal.reason
      throw error
    }
  }

  /**
   * Turns a read lock into a write lock if there is no other reader; else returns undefined and the read lock
   * stays. It never waits: two readers that waited for each other to leave would deadlock.
   */
  async tryUpgrade(read: LockHandle): Promise<LockHandle | undefined> {
    const held = this.#heldLockOf(read, 'read')
    const { name: readName } = held.entry
    const name = this.#nameAt(held.entry, 'write')
    const path = this.#queue.pathOf(name)
    try {
      const made = this.#create(path)
      const listed = this.#queue.list().catch(() => undefined)
      const entry = entryOf(await made)
      let names = (await listed)?.names
      if (names?.includes(name) !== true) names = (await this.#queue.list())?.names ?? []
      if (isAlone(names, { read: readName, write: name }, parseReadWrite)) {
        const token = await this.#tokenBefore(names, entry)
        held.handle.assertHeld()
        const write = this.#grant({ ...entry, token }, 'write')
        held.isReplaced = true
        await read.release()
        return write
      }
    } catch (error) {
      void this.client.delete(path, { guaranteed: true, missingOk: true }).catch(() => {})
      throw error
    }
    await this.client.delete(path, { guaranteed: true, missingOk: true })
    if (!held.handle.signal.aborted) return undefined
    throw held.handle.signal.reason
  }

  /** Returns the contenders in the order of the queue, the holders first. */
  participants(options?: CallOptions): Promise<ReadWriteParticipant[]> {
    return readParticipants(
      this.#queue,
      (participant, { isShared }) => ({ ...participant, mode: isShared ? 'read' : 'write' }),
      options,
    )
  }

  #side(mode: Mode): LockSide {
    const isFree = (names: readonly string[]): boolean =>
      contendersInOrder(names, parseReadWrite).every(({ isShared }) => isShared && mode === 'read')
    const waiting = {
      operation: `acquire ${mode} lock`,
      path: this.path,
      explain: (options: CallOptions) => explainQueue(this.#queue, options),
    }
    const acquire = (options: WaitOptions = {}): Promise<LockHandle> =>
      withLimits(this.client, options, waiting, (signal) =>
        acquireTurn(this.#queue, this.#turnOptions(mode, signal)),
      )
    return {
      acquire,
      tryAcquire: (options = {}) =>
        withLimits(this.client, options, waiting, (signal) =>
          tryAcquireTurn(this.#queue, this.#turnOptions(mode, signal), isFree),
        ),
      run: async (body, options) => {
        checkBody(body)
        const held = await acquire(options)
        return runAndRelease(
          () => body(held),
          () => held.release(),
        )
      },
    }
  }

  #turnOptions(mode: Mode, signal: AbortSignal | undefined): TurnOptions<LockHandle> {
    return {
      signal,
      prefix: prefixes[this.#queue.naming][mode],
      policy: this.#policy,
      grant: (entry, waitedMs) => this.#grant(entry, mode, waitedMs),
      ...this.waitOptions(),
    }
  }

  /**
   * Returns what a subclass does with waiting entries.
   * @internal
   */
  protected waitOptions(): Pick<TurnOptions<LockHandle>, 'createGuard' | 'onWaitEnd'> {
    return {}
  }

  /** @internal */
  protected createHandle(entry: QueueEntry, options: HandleOptions): EphemeralLockHandle {
    return new EphemeralLockHandle(this.client, entry, options)
  }

  #grant(entry: QueueEntry, mode: Mode, waitedMs = 0): EphemeralLockHandle {
    const handle: EphemeralLockHandle = this.createHandle(entry, {
      recipe: `${mode} lock`,
      policy: this.#policy,
      waitedMs,
      deletionReason: () => (held.isReplaced ? 'released' : 'nodeDeleted'),
    })
    const held: HeldLock = { handle, entry, mode, isReplaced: false }
    this.#held.set(handle, held)
    return handle
  }

  #heldLockOf(handle: LockHandle, mode: Mode): HeldLock {
    const held = this.#held.get(handle)
    if (held?.mode !== mode) {
      throw new UsageError(
        `Expected a ${mode} handle of the lock ${this.path}, got ${shown((handle as LockHandle | undefined)?.path)}`,
        {
          path: this.path,
        },
      )
    }
    handle.assertHeld()
    return held
  }

  /** Returns the name of a znode at the place of another one. */
  #nameAt({ name }: QueueEntry, mode: Mode): string {
    const { naming } = this.#queue
    return `${protectionIds[naming](uuid(this.client))}${prefixes[naming][mode]}${parseReadWrite(name)!.suffix}`
  }

  /**
   * Returns a token for a writer that has passed others: not below the token of any earlier reader, and below
   * those of the waiting writers, which come after it.
   */
  async #tokenBefore(names: readonly string[], entry: QueueEntry): Promise<bigint> {
    for (const { name, isShared } of contendersInOrder(names, parseReadWrite)) {
      if (isShared || name === entry.name) continue
      const waiting = await this.client.exists(this.#queue.pathOf(name))
      if (waiting !== undefined) return waiting.czxid < entry.token ? waiting.czxid - 1n : entry.token
    }
    return entry.token
  }

  #create(path: string): Promise<CreateResult> {
    const { acl, data } = this.#options
    return this.client
      .unordered()
      .create(path, { data, mode: 'ephemeral', ...(acl === undefined ? {} : { acl }) })
  }

  /** Creates a znode and deletes another one in one transaction. Repeats it while its outcome is unknown. */
  async #exchange(from: QueueEntry, path: string): Promise<QueueEntry> {
    const { acl, data } = this.#options
    const pause = pauses(this.client)
    for (;;) {
      try {
        const [made] = await this.client.unordered().multi([
          {
            op: 'create',
            path,
            mode: 'ephemeral',
            ...(acl === undefined ? {} : { acl }),
            ...(data === undefined ? {} : { data }),
          },
          { op: 'delete', path: from.path },
        ])
        const entry = await createdEntry(this.client, made)
        if (entry === undefined) throw entryDeleted(from)
        return entry
      } catch (error) {
        if (!isAmbiguous(error)) throw error
        // A znode of that name proves that the transaction was applied.
        await this.client.sync(path)
        const stat = await this.client.exists(path)
        if (this.client.session.id !== from.owner) throw error
        if (stat !== undefined) return entryOf({ path, stat })
        await pause()
      }
    }
  }
}
