import { connect } from '@zabra/client'
import { Prng } from '../harness/prng.ts'
import { treeDifferences } from './tree-differences.ts'
import type { Ensemble } from './ensemble.ts'
import { History } from './history.ts'
import { KazooWriter } from './kazoo-writer.ts'
import { Writer, type MayRefuse, type Retries } from './writer.ts'

const WRITERS = 4
/**
 * Milliseconds between two requests of a writer. Members answer in about as many, so a fault mostly meets writes in flight, and
 * writers without it would only take processor time from the members that they wait for.
 */
const PAUSE_MS = 5

export interface LoadOptions {
  readonly seed: number
  readonly sessionTimeout: number
  /** Number of kazoo processes that write too; none by default. */
  readonly kazoo?: number
  /** Whether the clients retry their writes; never by default, so that each lost connection leaves a write of unknown outcome. */
  readonly retries?: Retries
  /** Returns whether a write may be refused with this error now; none may by default. */
  readonly mayRefuse?: MayRefuse
  /** Milliseconds between two requests of a client; 5 by default. */
  readonly pauseMs?: number
}

/** The result of a run under load. */
export interface LoadResult {
  readonly violations: readonly string[]
  readonly acknowledged: number
  readonly unknown: number
  /** Number of expired sessions that were replaced by new ones. */
  readonly newSessions: number
  /** The longest time without an acknowledged write, in milliseconds, and when it began by `performance.now()`. */
  readonly longestOutage: { readonly ms: number; readonly since: number }
}

/**
 * Runs writers against an ensemble during `disturb` and checks their histories and the final trees. `disturb` receives a function
 * that waits for more acknowledged writes, so that each disturbance meets clients that write, even on a busy machine.
 */
export async function runUnderLoad(
  ensemble: Ensemble,
  { seed, sessionTimeout, kazoo = 0, pauseMs = PAUSE_MS, ...others }: LoadOptions,
  disturb: (waitForWrites: (count: number) => Promise<void>) => Promise<void>,
): Promise<LoadResult> {
  const commitsSyncs = ensemble.running.some((id) => ensemble.kindOf(id) !== 'zabra')
  const options = { ...others, pauseMs, commitsSyncs }
  const prng = new Prng(seed)
  const history = new History()
  const servers = ensemble.running.map((id) => ensemble.member(id).address)
  const writers: Writer[] = []
  for (let index = 0; index < WRITERS; index++)
    writers.push(
      await Writer.start(`w${index}`, servers, history, new Prng(prng.int(2 ** 31)), sessionTimeout, options),
    )
  const kazooWriters: KazooWriter[] = []
  for (let index = 0; index < kazoo; index++)
    kazooWriters.push(await KazooWriter.start(`k${index}`, servers, history, sessionTimeout))
  const stop = new AbortController()
  const load = Promise.all(writers.map((writer) => writer.run(writers, stop.signal)))
  try {
    await Promise.race([disturb((count) => history.waitForWrites(count)), load])
  } finally {
    stop.abort()
    await load
    await Promise.all(kazooWriters.map((writer) => writer.stop()))
  }
  const reader = await connect({ servers, sessionTimeoutMs: 30_000, waitForever: true })
  try {
    await reader.syncCommitted()
    for (const writer of [...writers, ...kazooWriters]) await writer.check(reader)
    history.checkOrder()
    const newSessions = writers.reduce((sum, writer) => sum + writer.newSessions, 0)
    await Promise.all(writers.map((writer) => writer.stop()))
    await reader.syncCommitted()
    const { children } = await reader.getChildren('/live')
    if (children.length > newSessions)
      history.addViolation(`Ephemeral nodes outlive their sessions: ${children.join(', ')}`)
    await reader.close()
    // No session is open while the trees are compared: with millions of znodes, that holds the event loop of this process for
    // longer than a session timeout.
    for (const difference of await treeDifferences(ensemble)) history.addViolation(difference)
    const { violations, acknowledged, unknown } = history
    return {
      violations,
      acknowledged,
      unknown,
      newSessions,
      longestOutage: history.longestOutage(),
    }
  } finally {
    await reader.close()
  }
}
