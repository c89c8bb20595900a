import {
  BadVersionError,
  ConnectionLossError,
  NoNodeError,
  SessionExpiredError,
  utf8,
  type CallOptions,
  type Client,
} from '@zabra/client/core'
import { childPath, withoutTimeout } from '@zabra/client/recipe-kit'
import type { Handle, WaitOptions } from '../handles/types.ts'
import { orAborted, withLimits, type WaitContext } from '../support/limits.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import {
  causeAt,
  createIfMissing,
  ignoreFailure,
  isAmbiguous,
  isNewSession,
  pauses,
  retryInNewSession,
  undefinedIfMissing,
} from '../support/retry.ts'
import { commitWithMarker, deleteMarker, uniqueName } from '../support/commit-with-marker.ts'
import { watchUntil } from '../support/watch.ts'
import { nextLeaveStep, roundOf } from './decide.ts'
import { anything, checkArgument, checkOptions, checkRecipe, waiting, whole } from '../support/checks.ts'

/** Membership in the current round of a double barrier. */
export interface BarrierHandle extends Handle {
  /** Number of the round; grows by one with each. */
  readonly round: number
  /**
   * Leaves, and resolves when all members have left. An abort, or the end of the time, leaves at once without waiting.
   * Rejects with a `SessionExpiredError` when the session expired inside: the other members did not wait for this one.
   */
  release(options?: Omit<WaitOptions, 'onExpiry'>): Promise<void>
}

interface Membership {
  readonly round: number
  readonly name: string
  readonly path: string
  readonly owner: bigint
}

/** The round in which a session of this member expired before the round opened. */
interface LostRound {
  lost: { readonly round: number; readonly owner: bigint } | undefined
}

/** Lets a fixed number of participants start together and end together, in rounds. */
export class DoubleBarrier {
  readonly path: string
  readonly #client: Client
  readonly #members: number

  constructor(client: Client, path: string, options: { readonly members: number }) {
    checkRecipe('DoubleBarrier', client, path, options, { members: anything })
    const members = (options as { members?: unknown } | undefined)?.members as number
    checkArgument('DoubleBarrier', 'members', members, ['a whole number from 1', whole(1)])
    this.#client = withoutTimeout(client).unordered()
    this.path = path
    this.#members = members
  }

  /**
   * Waits until enough participants have come, and enters with them. Retries in a new session while the round is
   * not open; rejects with a `SessionExpiredError` when it opened without this participant.
   */
  enter(options: WaitOptions = {}): Promise<BarrierHandle> {
    return withLimits(this.#client, options, this.#waiting('doubleBarrier.enter'), (signal) =>
      this.#enter(signal),
    )
  }

  async #enter(signal: AbortSignal | undefined): Promise<BarrierHandle> {
    const lostRound: LostRound = { lost: undefined }
    for (;;) {
      const entry = await this.#join(signal, lostRound)
      if (entry === undefined) continue
      try {
        const outcome = await this.#waitUntilOpen(entry, signal)
        if (outcome === 'open') return this.#createHandle(entry)
        if (outcome === 'missed') throw this.#sessionLost(entry.owner)
        if (this.#client.session.id !== entry.owner) lostRound.lost = entry
        await this.#withdraw(entry.path, signal)
      } catch (error) {
        deleteMarker(this.#client, entry.path)
        throw error
      }
    }
  }

  /**
   * A server may keep a session longer than its client does. A znode of the old session would count beside that of
   * the new one.
   */
  async #withdraw(path: string, signal: AbortSignal | undefined): Promise<void> {
    const options = { missingOk: true, ...(signal && { signal }) }
    await retryInNewSession(this.#client, () => this.#client.delete(path, options))
  }

  /** Joins the current round; returns undefined when it has ended meanwhile. */
  async #join(signal: AbortSignal | undefined, lostRound: LostRound): Promise<Membership | undefined> {
    const { round, version } = await retryInNewSession(this.#client, () => this.#readRound(signal))
    // The other members may have counted the znode of the expired session.
    if (lostRound.lost !== undefined && round > lostRound.lost.round)
      throw this.#sessionLost(lostRound.lost.owner)
    const name = uniqueName(this.#client)
    const path = childPath(this.#roundPath(round), name)
    try {
      const check = { op: 'check', path: this.path, version } as const
      const joined = commitWithMarker(this.#client, path, [check], { signal, needsMarkerStat: true })
      // Nothing is lost with a member that has given up, so it does not wait for the outcome.
      const { marker } = await orAborted(joined, signal, {
        operation: 'doubleBarrier.enter',
        path: this.path,
      })
      if (marker === undefined) return undefined
      return { round, name, path, owner: marker.ephemeralOwner }
    } catch (error) {
      const cause = causeAt(error, 0)
      if (cause instanceof BadVersionError || cause instanceof NoNodeError) return undefined
      if (!(error instanceof AmbiguousResultError)) {
        deleteMarker(this.#client, path)
        throw error
      }
      // The session expired, and its znode with it; the other members may have counted that znode before.
      lostRound.lost = { round, owner: this.#client.session.id }
      await this.#withdraw(path, signal)
      return undefined
    }
  }

  async #readRound(signal: AbortSignal | undefined): Promise<{ round: number; version: number }> {
    const options = signal ? { signal } : {}
    for (;;) {
      const found = await undefinedIfMissing(this.#client.getData(this.path, options))
      if (found !== undefined) return { round: roundOf(utf8.decode(found.data)), version: found.stat.version }
      await createIfMissing(this.#client, this.path, utf8.encode('0'), { ...options, parents: true })
    }
  }

  /**
   * `missed`: the session expired and the round opened. `again`: the session expired and the round can still be
   * joined, or another client has changed the barrier or deleted the znode of this member, which is no longer in the current round.
   */
  async #waitUntilOpen(
    entry: Membership,
    signal: AbortSignal | undefined,
  ): Promise<'open' | 'missed' | 'again'> {
    const { round, name, path } = entry
    const pause = pauses(this.#client, signal)
    for (;;) {
      const seen = await watchUntil(
        this.#client,
        { signal, operation: 'doubleBarrier.enter' },
        async (reader) => {
          const found = await reader.data(this.path)
          const own = this.#client.session.id === entry.owner
          const now = found === undefined ? round : roundOf(utf8.decode(found.data))
          if (now > round) return own ? 'open' : 'missed'
          if (!own || found === undefined || now < round) return 'again'
          const members = await this.#listMembers(round, { signal: reader.signal })
          if (!members.includes(name)) return 'again'
          // Not the version at the join: another client may have written the same round again.
          if (members.length >= this.#members) return found.stat
          // Watches the own znode: another client may delete it, and no other change would wake this member.
          return (await reader.data(path)) === undefined ? 'again' : undefined
        },
      )
      if (typeof seen === 'string') return seen
      await this.#open(round, seen.version, signal)
      await pause()
    }
  }

  /** The member that sees the round complete opens it. The next read shows whether it did, in a new session too. */
  async #open(round: number, version: number, signal: AbortSignal | undefined): Promise<void> {
    try {
      const options = { version, retry: false, signal } as const
      await this.#client.setData(this.path, utf8.encode(String(round + 1)), options)
    } catch (error) {
      const isOutdated = error instanceof BadVersionError || error instanceof NoNodeError
      const isLost =
        error instanceof ConnectionLossError || isAmbiguous(error) || isNewSession(this.#client, error)
      if (!isOutdated && !isLost) throw error
    }
  }

  #roundPath(round: number): string {
    return childPath(this.path, `r${round}`)
  }

  async #listMembers(round: number, options: CallOptions): Promise<readonly string[]> {
    const list = await undefinedIfMissing(this.#client.getChildren(this.#roundPath(round), options))
    return list?.children ?? []
  }

  #createHandle(entry: Membership): BarrierHandle {
    let left: Promise<void> | undefined
    const release = async (options: WaitOptions = {}): Promise<void> => {
      // A wrong call must not be the one release.
      checkOptions(`doubleBarrier.release ${this.path}`, options, waiting)
      left ??= withLimits(this.#client, options, this.#waiting('doubleBarrier.release'), (signal) =>
        this.#leave(entry, signal),
      )
      return left
    }
    return { round: entry.round, release, [Symbol.asyncDispose]: () => release() }
  }

  #waiting(operation: string): WaitContext {
    const explain = async (call: CallOptions): Promise<{ text: string }> => {
      const { data } = await this.#client.getData(this.path, call)
      const round = roundOf(utf8.decode(data))
      const members = await this.#listMembers(round, call)
      return { text: `${members.length} of ${this.#members} members are in round ${round}` }
    }
    return { operation, path: this.path, explain }
  }

  async #leave(entry: Membership, signal: AbortSignal | undefined): Promise<void> {
    try {
      for (;;) {
        const step = await this.#nextStep(entry, signal)
        if (step === 'expired') throw this.#sessionLost(entry.owner)
        if (step.do === 'done') return
        await this.#client.delete(entry.path, {
          guaranteed: true,
          missingOk: true,
          ...(signal && { signal }),
        })
        if (step.do === 'leave' && step.last) return this.#deleteRound(entry.round)
      }
    } catch (error) {
      deleteMarker(this.#client, entry.path)
      throw error
    }
  }

  #nextStep(
    { round, name, owner }: Membership,
    signal: AbortSignal | undefined,
  ): Promise<'expired' | Exclude<ReturnType<typeof nextLeaveStep>, { do: 'wait' }>> {
    return watchUntil(this.#client, { signal, operation: 'doubleBarrier.release' }, async (reader) => {
      for (;;) {
        if (this.#client.session.id !== owner) return 'expired'
        const step = nextLeaveStep(await this.#listMembers(round, { signal: reader.signal }), name)
        if (step.do !== 'wait') return step
        if ((await reader.data(childPath(this.#roundPath(round), step.forDeletionOf))) !== undefined)
          return undefined
      }
    })
  }

  /** The last member deletes the round. If it fails to, the server does: the round is an empty container. */
  #deleteRound(round: number): void {
    ignoreFailure(this.#client.delete(this.#roundPath(round), { guaranteed: true, missingOk: true }))
  }

  #sessionLost(owner: bigint): SessionExpiredError {
    return new SessionExpiredError(
      `The session expired, and the other members of ${this.path} continued without this one`,
      owner,
      { path: this.path },
    )
  }
}
