import {
  UsageError,
  type Bytes,
  type CallOptions,
  type Client,
  type Codec,
  type Stat,
} from '@zabra/client/core'
import { childPath, withCodecErrors, withoutTimeout } from '@zabra/client/recipe-kit'
import type { Abortable, KeptHandle, WaitOptions } from '../handles/types.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { NodeConflictError, PersistentNode, waitForReady } from '../persistent-node/persistent-node.ts'
import type { Entry } from '../tree-cache/entries.ts'
import { TreeCache } from '../tree-cache/tree-cache.ts'
import { decodeName, encodeName } from '../support/name-codec.ts'
import { callSignal } from '../support/call-signal.ts'
import { delay } from '../support/delay.ts'
import { undefinedIfMissing } from '../support/retry.ts'
import { difference, type Difference } from './decide.ts'
import {
  abortable,
  checkArgument,
  checkOptions,
  checkRecipe,
  codec as aCodec,
  joining,
  milliseconds,
  text,
} from '../support/checks.ts'

export interface GroupOptions<T> {
  /** Encodes the values of members (default: raw bytes). */
  readonly codec?: Codec<T> | undefined
  /** Milliseconds for which changes are collected before they are reported (default 0). */
  readonly settleMs?: number | undefined
}

/** Another live session has joined the group under the same id. */
export class MemberIdConflictError extends NodeConflictError {
  static override readonly tag = 'MemberIdConflictError'
}

/** A view of a group that differs from the previous one; the first lists all members in `joined`. */
export interface GroupChange<T> extends Difference {
  /** All current members and their values. */
  readonly members: ReadonlyMap<string, T>
}

export interface JoinOptions extends WaitOptions {
  /**
   * When another live session has the id: fail with a `MemberIdConflictError` (default), or wait until the id is free.
   */
  readonly onConflict?: 'fail' | 'wait' | undefined
}

/** Membership in a group, which outlives the session that joined. */
export interface Membership<T> extends KeptHandle {
  readonly id: string
  /** Replaces the value that the other members see. */
  update(value: T): Promise<void>
  /** Leaves the group and deletes the znode of the member. */
  release(): Promise<void>
}

/** Group membership: clients join, leave and fail, and observers follow the changes. */
export class Group<T = Bytes> implements AsyncDisposable {
  readonly path: string
  readonly #client: Client
  readonly #codec: Codec<T>
  readonly #settleMs: number
  readonly #memberships = new Set<PersistentNode>()
  readonly #stop = new AbortController()
  /** Decoded values by their data, which the cache keeps while a znode is unchanged: they keep their identity, too. */
  readonly #decoded = new WeakMap<Bytes, { readonly value: T }>()

  constructor(client: Client, path: string, options: GroupOptions<T> = {}) {
    checkRecipe('Group', client, path, options, { codec: aCodec, settleMs: milliseconds })
    const { codec, settleMs = 0 } = options
    this.#client = withoutTimeout(client)
    this.path = path
    this.#codec = withCodecErrors(codec ?? (identityCodec as unknown as Codec<T>), {
      operation: 'group',
      path,
    })
    this.#settleMs = settleMs
  }

  /**
   * Joins under an id and stays a member across sessions until the handle is released. Rejects with a
   * `MemberIdConflictError` when another session has the id, and with a `UsageError` after `close`.
   */
  async join(id: string, value: T, options: JoinOptions = {}): Promise<Membership<T>> {
    checkArgument('group.join', 'an id', id, text)
    checkOptions(`group.join ${this.path}`, options, joining)
    const { onConflict, ...limits } = options
    if (this.#stop.signal.aborted)
      throw new UsageError(`Expected an open group on ${this.path}, got a closed one`, { path: this.path })
    const path = this.#pathOf(id)
    throwIfAborted(options.signal, path, 'group.join')
    const node = new PersistentNode(this.#client, path, this.#codec.encode(value), { onConflict })
    this.#memberships.add(node)
    try {
      await waitForReady(this.#client, node, limits, { operation: 'group.join', path })
    } catch (error) {
      this.#memberships.delete(node)
      throw error instanceof NodeConflictError ? new MemberIdConflictError(path, error.owner) : error
    }
    const release = (): Promise<void> => {
      this.#memberships.delete(node)
      return node.close()
    }
    return {
      id,
      signal: node.signal,
      update: async (next) => node.setData(this.#codec.encode(next)),
      release,
      [Symbol.asyncDispose]: release,
    }
  }

  /** Returns the current members. Skips those whose values the codec cannot read, as `changes` does. */
  async members(options: CallOptions = {}): Promise<ReadonlyMap<string, T>> {
    const list = await undefinedIfMissing(this.#client.getChildren(this.path, options))
    const found = (list?.children ?? []).map(async (name): Promise<[string, T][]> => {
      const id = decodeName(name)
      const node =
        id === undefined
          ? undefined
          : await undefinedIfMissing(this.#client.getData(childPath(this.path, name), options))
      if (id === undefined || node === undefined || !isMember(node.stat)) return []
      const member = this.#decode(node.data)
      return member === undefined ? [] : [[id, member.value]]
    })
    return new Map((await Promise.all(found)).flat())
  }

  /** Yields the members, then each changed view, until the consumer leaves the loop or `signal` aborts. */
  async *changes(options: Abortable = {}): AsyncGenerator<GroupChange<T>, void, undefined> {
    checkOptions(`group.changes ${this.path}`, options, abortable)
    const { signal } = options
    const stopped = callSignal(this.#stop.signal, signal)
    const cache = new TreeCache(this.#client, this.path, { depth: 1 })
    let known: ReadonlyMap<string, { readonly value: T }> = new Map()
    let hasEmitted = false
    let revision = -1
    try {
      for await (const { type } of cache.events({ signal: stopped })) {
        // The view of an earlier event has this one, too.
        if (cache.revision === revision) continue
        if (cache.stale || type === 'stale' || type === 'unreadable') continue
        if (this.#settleMs > 0 && hasEmitted) await delay(this.#client, this.#settleMs, stopped)
        revision = cache.revision
        const entries = this.#readMembers(cache)
        const members = new Map([...entries].map(([id, { value }]) => [id, value]))
        const changes = difference(known, entries)
        if (hasEmitted && changes.joined.length + changes.left.length + changes.changed.length === 0) continue
        known = entries
        hasEmitted = true
        yield { members, ...changes }
      }
    } finally {
      void cache.close()
    }
  }

  /** Leaves with all members that joined through this object, and ends the loops over changes. */
  async close(): Promise<void> {
    this.#stop.abort()
    const nodes = [...this.#memberships]
    this.#memberships.clear()
    await Promise.all(nodes.map((node) => node.close()))
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /** Skips members whose values cannot be decoded: they use another codec. */
  #readMembers(cache: TreeCache): Map<string, { readonly value: T }> {
    const found = new Map<string, { readonly value: T }>()
    for (const name of cache.children(this.path) ?? []) {
      const id = decodeName(name)
      const entry = cache.get(childPath(this.path, name))
      const member = entry && isMember(entry.stat) ? this.#memberOf(entry) : undefined
      if (id !== undefined && member !== undefined) found.set(id, member)
    }
    return found
  }

  #memberOf(entry: Entry<Bytes>): { readonly value: T } | undefined {
    const known = this.#decoded.get(entry.value)
    if (known !== undefined) return known
    const member = this.#decode(entry.value)
    if (member !== undefined) this.#decoded.set(entry.value, member)
    return member
  }

  #decode(data: Bytes): { readonly value: T } | undefined {
    try {
      return { value: this.#codec.decode(data) }
    } catch {
      return undefined
    }
  }

  #pathOf(id: string): string {
    return childPath(this.path, encodeName(id))
  }
}

/** The root has a znode of the servers beside its members. */
const isMember = ({ ephemeralOwner }: Stat): boolean => ephemeralOwner !== 0n

const identityCodec: Codec<Bytes> = { encode: (value) => value, decode: (data) => data }
