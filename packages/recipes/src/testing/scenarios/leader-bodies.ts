import { ZooKeeperError, type Client } from '@zabra/client/core'
import { LeaderElection, type Leader } from '../../leader-election/index.ts'
import { delay } from '../../support/delay.ts'
import { expectEqual, type ScenarioContext } from './context.ts'
import { Fence } from './fence.ts'

/**
 * Participants lead with bodies: never two bodies at once in one participant, and one leader once all faults have
 * stopped.
 */
export async function runLeaderBodies({
  prng,
  clients,
  names,
  observer,
  waitUntilHealed,
  sleep,
  createChecker,
}: ScenarioContext): Promise<void> {
  const checker = createChecker()
  const fence = await Fence.create(observer)
  const stop = new AbortController()
  const bodies = clients.map(() => 0)
  const leading = new Map<string, bigint>()
  const take = async (client: Client, i: number): Promise<void> => {
    const election = new LeaderElection(client, '/e', { id: names[i]!, announce: true })
    while (!stop.signal.aborted) {
      try {
        await election.lead(
          async (leadership) => {
            if (++bodies[i]! > 1) checker.violations.push(`two bodies of ${names[i]} at once`)
            leading.set(names[i]!, leadership.token)
            try {
              checker.recordGrant(names[i]!, leadership)
              await fence.write(leadership, true)
              const long = prng.chance(20) ? 25_000 : 2000
              await delay(client, prng.between(0, long), leadership.signal).catch(() => {})
              // Some leaders stop slowly.
              if (prng.chance(60)) await delay(client, prng.between(0, 6000))
              await fence.write(leadership, true)
            } finally {
              bodies[i]!--
              leading.delete(names[i]!)
            }
            leadership.assertHeld()
          },
          { requeue: prng.chance(80), signal: stop.signal },
        )
      } catch (error) {
        if (!(error instanceof ZooKeeperError)) throw error
        await delay(client, 100)
      }
    }
    await election[Symbol.asyncDispose]()
  }
  const watching = new LeaderElection(observer, '/e', { announce: true })
  const seen: (Leader | undefined)[] = []
  const observing = (async () => {
    for await (const leader of watching.observe()) seen.push(leader)
  })()
  const all = clients.map(take)
  for (const each of [...all, observing]) each.catch(() => {})
  await sleep(20_000)
  await waitUntilHealed()
  const before = seen.length
  await sleep(45_000)
  if (seen.length === before) throw new Error('no new leader since all faults stopped')
  stop.abort()
  await Promise.all(all)
  await sleep(5000)
  expectEqual('the leader after all have left', seen.at(-1), undefined)
  const tokens = seen.flatMap((leader) => (leader === undefined ? [] : [leader.token]))
  expectEqual(
    'order of the observed tokens',
    tokens,
    tokens.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
  )
  await watching[Symbol.asyncDispose]()
  await observing
  expectEqual('overlapping leaders', [...checker.violations, ...fence.violations], [])
}
