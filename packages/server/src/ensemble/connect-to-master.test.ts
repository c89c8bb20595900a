import {
  ManualClock,
  NetworkError,
  SeededRandom,
  silentLogger,
  type Address,
  type Connection,
} from '@zabra/runtime'
import { expect, it } from 'vitest'
import { parseConfiguration, type ServerId } from '../core/quorum/index.ts'
import type { MemberContext } from './context.ts'
import { connectToMaster, type MasterConnection } from './connect-to-master.ts'

const MASTER_PORT = 5001
const members = parseConfiguration(
  ['1:participant', '2:participant', '3:participant', '4:participant', '9:observer']
    .map((each) => each.split(':'))
    .map(([id, role]) => `server.${id}=h${id}:1:2:${role}`)
    .join('\n'),
)

/** Observer 9 looks for who keeps it up to date, where 4 leads and only those at `open` answer. */
async function sought(
  seed: number,
  open: readonly string[],
): Promise<{ found: MasterConnection; tried: string[] }> {
  const clock = new ManualClock()
  const tried: string[] = []
  const connect = async ({ host, port }: Address): Promise<Connection> => {
    tried.push(`${host}:${port}`)
    if (!open.includes(`${host}:${port}`)) throw new NetworkError('ECONNREFUSED', 'ECONNREFUSED')
    return { remote: { host, port } } as unknown as Connection
  }
  const context = {
    settings: {
      observerMasterPort: MASTER_PORT,
      tickTimeMs: 1000,
      initLimit: 10,
      connectToLearnerMasterLimit: 0,
      connectRetryDelayMs: 100,
    },
    platform: { network: { connect }, clock, random: new SeededRandom(seed), logger: silentLogger },
    membership: {
      active: members,
      addressesOf: (id: ServerId) => [{ host: `h${id}`, port: 1 }],
    },
  } as unknown as MemberContext
  let found: MasterConnection | undefined
  const { signal } = new AbortController()
  void connectToMaster(context, { leader: 4, observer: true, signal }).then((one) => (found = one))
  for (let waited = 0; found === undefined && waited < 3000; waited += 50) {
    clock.advance(50)
    await clock.untilIdle()
  }
  return { found: found!, tried }
}

it('spreads observers over the followers of their leader', async () => {
  const open = [1, 2, 3, 4].map((id) => `h${id}:${MASTER_PORT}`)
  const counts = new Map<ServerId, number>()
  for (let seed = 1; seed <= 60; seed++) {
    const { found } = await sought(seed, open)
    counts.set(found.master, (counts.get(found.master) ?? 0) + 1)
  }
  expect(new Set(counts.keys())).toEqual(new Set([1, 2, 3]))
  expect(Math.min(...counts.values())).toBeGreaterThan(8)
})

it('goes to the one follower that takes observers, whoever is asked first', async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const { found } = await sought(seed, ['h4:1', `h2:${MASTER_PORT}`])
    expect([found.master, found.connection.remote]).toEqual([2, { host: 'h2', port: MASTER_PORT }])
  }
})

it('goes to the leader when no follower has taken it for a tick, each having been asked again', async () => {
  const { found, tried } = await sought(1, ['h4:1', `h4:${MASTER_PORT}`])
  expect([found.master, found.connection.remote]).toEqual([4, { host: 'h4', port: 1 }])
  for (const id of [1, 2, 3])
    expect(tried.filter((each) => each === `h${id}:${MASTER_PORT}`).length).toBeGreaterThan(5)
  expect(tried).not.toContain(`h9:${MASTER_PORT}`)
})
