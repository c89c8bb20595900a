import { resolve } from 'node:path'
import { connect, utf8, type Client, type TypedClient } from '@zabra/client'
import { Lease, LeaderElection, Mutex, ReadWriteLock, Semaphore } from '@zabra/recipes'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { describeWith, python } from './harness/requirements.ts'
import { ScriptedPeer } from './harness/scripted-peer.ts'
import { serverUnderTest, reference, Server, type Kind } from './harness/servers.ts'

const ROUNDS = 30
const script = resolve(import.meta.dirname, '../python/locks.py')

type Scenario = 'lock' | 'patterns' | 'rw' | 'semaphore' | 'permits' | 'election'

/** Starts `python/locks.py` in one of its scenarios. Resolves when kazoo is connected. */
const startKazoo = (server: Server, scenario: Scenario): Promise<ScriptedPeer> =>
  ScriptedPeer.start(python, [script, server.address, String(ROUNDS), scenario])

const suite = (kind: Kind): void => {
  let server: Server
  let clients: Client[]
  let counter: TypedClient<string>

  beforeAll(async () => {
    server = await Server.start({ kind })
  })
  afterAll(() => server.stop())
  beforeEach(async () => {
    const servers = server.address
    clients = await Promise.all(
      [1, 2, 3].map(() => connect({ servers, signal: AbortSignal.timeout(15_000) })),
    )
    counter = clients[0]!.withCodec(utf8)
    await counter.set('/counter', '0', { createIfMissing: true })
  })
  afterEach(() => Promise.all(clients.map((client) => client.close())))

  const increment = async (): Promise<void> => {
    const { value } = await counter.get('/counter')
    await counter.set('/counter', String(Number(value) + 1), { idempotent: true })
  }
  const onEachClient = (turn: (client: Client) => Promise<unknown>): Promise<unknown> =>
    Promise.all(
      clients.map(async (client) => {
        for (let round = 0; round < ROUNDS; round++) await turn(client)
      }),
    )
  const total = async (): Promise<number> => Number((await counter.get('/counter')).value)
  const children = async (path: string): Promise<string[]> => (await clients[0]!.getChildren(path)).children

  it.each<readonly [title: string, Scenario, paths: string[], turn: (client: Client) => Promise<unknown>]>([
    [
      'Mutex with the naming of kazoo excludes kazoo',
      'lock',
      ['/lock'],
      (client) => new Mutex(client, '/lock', { naming: 'kazoo' }).run(increment),
    ],
    [
      'Mutex excludes a kazoo lock with extra_lock_patterns',
      'patterns',
      ['/lock'],
      (client) => new Mutex(client, '/lock').run(increment),
    ],
    [
      'ReadWriteLock excludes writers of kazoo',
      'rw',
      ['/rw'],
      async (client) => {
        const lock = new ReadWriteLock(client, '/rw', { naming: 'kazoo' })
        await lock.write.run(increment)
        await lock.read.run(async () => {
          expect((await counter.get('/counter')).value).toBe((await counter.get('/counter')).value)
        })
      },
    ],
    [
      'Semaphore with one permit excludes kazoo',
      'semaphore',
      ['/permits', '/permits-__lock__'],
      (client) => new Semaphore(client, '/permits', { permits: 1, naming: 'kazoo' }).run(increment),
    ],
    [
      'LeaderElection elects one leader at a time with kazoo',
      'election',
      ['/e'],
      (client) => new LeaderElection(client, '/e', { naming: 'kazoo' }).lead(increment),
    ],
  ])('%s', async (_title, scenario, paths, turn) => {
    const other = await startKazoo(server, scenario)
    other.proceed()
    await onEachClient(turn)
    await other.done
    expect(await total()).toBe(4 * ROUNDS)
    for (const path of paths) expect(await children(path)).toEqual([])
  })

  it('Semaphore and kazoo never exceed the permits, and kazoo rejects another limit', async () => {
    const other = await startKazoo(server, 'permits')
    other.proceed()
    const options = { permits: 2, naming: 'kazoo' } as const
    await onEachClient((client) =>
      new Semaphore(client, '/permits2', options).run(async () =>
        expect((await children('/permits2')).length).toBeLessThanOrEqual(2),
      ),
    )
    await other.done
    expect(await children('/permits2')).toEqual([])
    await new Semaphore(clients[0]!, '/permits2', options).setPermits(3)
    const refused = await startKazoo(server, 'permits')
    refused.proceed()
    await expect(refused.done).rejects.toThrow('Inconsistent max leases: 3, expected: 2')
  })

  it('downgrade, upgrade, guard, semaphore, lease and election work on this server', async () => {
    const [a, b] = clients as [Client, Client]
    const lock = new ReadWriteLock(a, '/rw2')
    const read = await lock.downgrade(await lock.write.acquire())
    const other = await new ReadWriteLock(b, '/rw2').read.acquire()
    expect(await lock.tryUpgrade(read)).toBeUndefined()
    await other.release()
    const write = await lock.tryUpgrade(read)
    await write!.guard([{ op: 'setData', path: '/counter', data: utf8.encode('7') }])
    expect(await total()).toBe(7)
    await write!.release()
    const permits = await new Semaphore(a, '/s', { permits: 2 }).acquire({ permits: 2 })
    const waiting = new Semaphore(b, '/s', { permits: 2 }).acquire({ permits: 1 })
    await permits.release()
    await (await waiting).release()
    const leased = await new Lease(a, '/l', { holder: 'a', durationMs: 60_000 }).tryAcquire()
    expect(await new Lease(b, '/l', { holder: 'b', durationMs: 60_000 }).tryAcquire()).toBeUndefined()
    await leased!.renew()
    await leased!.release()
    const ids: string[] = []
    const body = (id: string) => async () => void ids.push(id)
    await Promise.all([
      new LeaderElection(a, '/e', { announce: true }).lead(body('a')),
      new LeaderElection(b, '/e', { announce: true }).lead(body('b')),
    ])
    expect(ids.toSorted()).toEqual(['a', 'b'])
    for (const path of ['/rw2', '/s/locks', '/s/leases', '/e']) expect(await children(path)).toEqual([])
  })
}

describeWith(['apache', 'kazoo'], 'locks with kazoo', () => {
  for (const kind of [reference, serverUnderTest]) describe(`on ${kind}`, () => suite(kind))
})
