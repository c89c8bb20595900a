import type { Connection } from '@zabra/runtime'
import { votersOf, type ServerId } from '../core/quorum/index.ts'
import { dial, dialDefaults, delay, type DialOptions } from './dial.ts'
import type { MemberContext } from './context.ts'

/** Who keeps a learner up to date, and the connection to it. */
export interface MasterConnection {
  readonly connection: Connection
  readonly master: ServerId
}

/** Which learner looks for whom. */
export interface MasterTarget {
  readonly leader: ServerId
  readonly observer: boolean
  readonly signal: AbortSignal
}

type Base = Omit<DialOptions, 'addresses' | 'timeoutMs' | 'retryForMs'>

/**
 * Connects a learner to its leader. An observer with an `observerMasterPort` prefers the followers, in any order; when none
 * of them takes it within a tick it goes to the leader all the same, where the reference would go on trying. Rejects with a
 * `NetworkError` when nobody can be reached.
 */
export async function connectToMaster(
  context: MemberContext,
  sought: MasterTarget,
): Promise<MasterConnection> {
  const { settings, platform, membership } = context
  const { leader, observer, signal } = sought
  const budgetMs = (settings.connectToLearnerMasterLimit || settings.initLimit) * settings.tickTimeMs
  const base: Base = {
    network: platform.network,
    clock: platform.clock,
    maxRetryDelayMs: settings.connectRetryDelayMs,
    signal,
  }
  if (observer && settings.observerMasterPort > 0) {
    const reached = await reachFollower(context, base, leader, Math.min(settings.tickTimeMs, budgetMs))
    if (reached !== undefined) return reached
    platform.logger.info({ leader }, 'No follower takes this observer; it goes to the leader')
  }
  const addresses = membership.addressesOf(leader, 'quorumPort')
  const { retryForMs: patienceMs } = dialDefaults
  return {
    connection: await dial({ ...base, addresses, timeoutMs: budgetMs, retryForMs: patienceMs }),
    master: leader,
  }
}

/** Tries one follower after the other, again and again. A host that does not answer must not use up the time of all. */
async function reachFollower(
  { settings, platform, membership }: MemberContext,
  base: Base,
  leader: ServerId,
  withinMs: number,
): Promise<MasterConnection | undefined> {
  const followers = votersOf(membership.active).filter((id) => id !== leader)
  const { clock, random } = platform
  const until = clock.monotonic() + withinMs
  shuffle(followers, (below) => random.below(below))
  while (clock.monotonic() < until && followers.length > 0 && !base.signal.aborted) {
    for (const master of followers) {
      const addresses = membership
        .addressesOf(master, 'quorumPort')
        .map(({ host }) => ({ host, port: settings.observerMasterPort }))
      const budgetMs = Math.max(1, Math.min(withinMs / followers.length, until - clock.monotonic()))
      try {
        return { connection: await dial({ ...base, addresses, timeoutMs: budgetMs, retryForMs: 0 }), master }
      } catch {
        // The next one is tried, and after all of them the leader, whose error is told.
        if (base.signal.aborted) break
      }
    }
    await delay(clock, base.maxRetryDelayMs, base.signal)
  }
  return undefined
}

/** Every order is as likely as any other. */
function shuffle(ids: ServerId[], below: (bound: number) => number): void {
  for (let at = ids.length - 1; at > 0; at--) {
    const other = below(at + 1)
    ;[ids[at], ids[other]] = [ids[other]!, ids[at]!]
  }
}
