import { connect } from '@zabra/client'
import { Prng } from '../harness/prng.ts'
import { treeDifferences } from './tree-differences.ts'
import type { Ensemble } from './ensemble.ts'
import { History } from './history.ts'
import { KazooWriter } from './kazoo-writer.ts'
import { Writer } from './writer.ts'

const WRITERS = 4

export interface LoadOptions {
  readonly seed: number
  readonly sessionTimeout: number
  /** How many processes with kazoo write too; none by default. */
  readonly kazoo?: number
}

/** What a trial came to. */
export interface LoadResult {
  readonly violations: readonly string[]
  readonly acknowledged: number
  readonly unknown: number
  /** Sessions that had to begin anew. */
  readonly newSessions: number
  /** The longest time without an acknowledged write, in milliseconds, and when it began by `performance.now()`. */
  readonly longestOutage: { readonly ms: number; readonly since: number }
}

/**
 * Puts an ensemble under load while `happen` happens to it, and judges what its clients were told. `more` resolves when so many
 * more writes are acknowledged: between two things that happen, or they would meet nobody on a machine that is busy.
 */
export async function runUnderLoad(
  ensemble: Ensemble,
  { seed, sessionTimeout, kazoo = 0 }: LoadOptions,
  happen: (more: (count: number) => Promise<void>) => Promise<void>,
): Promise<LoadResult> {
  const prng = new Prng(seed)
  const history = new History()
  const servers = ensemble.ids.map((id) => ensemble.member(id).address)
  const writers: Writer[] = []
  for (let index = 0; index < WRITERS; index++)
    writers.push(
      await Writer.start(`w${index}`, servers, history, new Prng(prng.int(2 ** 31)), sessionTimeout),
    )
  const foreign: KazooWriter[] = []
  for (let index = 0; index < kazoo; index++)
    foreign.push(await KazooWriter.start(`k${index}`, servers, history, sessionTimeout))
  const over = new AbortController()
  const load = Promise.all(writers.map((writer) => writer.run(writers, over.signal)))
  try {
    await Promise.race([happen((count) => history.waitForWrites(count)), load])
  } finally {
    over.abort()
    await load
    await Promise.all(foreign.map((writer) => writer.stop()))
  }
  const reader = await connect({ servers, sessionTimeout: 30_000 })
  try {
    await reader.syncCommitted()
    for (const writer of [...writers, ...foreign]) await writer.check(reader)
    history.checkOrder()
    for (const difference of await treeDifferences(ensemble)) history.addViolation(difference)
    const renewals = writers.reduce((sum, writer) => sum + writer.newSessions, 0)
    await Promise.all(writers.map((writer) => writer.stop()))
    await reader.syncCommitted()
    const { children } = await reader.getChildren('/live')
    if (children.length > renewals) history.addViolation(`Sessions have ended, and ${children.join(', ')} live`)
    const { violations, acknowledged, unknown } = history
    return { violations, acknowledged, unknown, newSessions: renewals, longestOutage: history.longestOutage() }
  } finally {
    await reader.close()
  }
}
