import { connect, utf8, type Client } from '@zabra/client'
import {
  Barrier,
  Counter,
  curatorItems,
  LeaderElection,
  Mutex,
  Queue,
  ReadWriteLock,
  Semaphore,
} from '@zabra/recipes'
import { ServiceDiscovery, uriOf, uriSpec } from '@zabra/recipes/service-discovery'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { startCurator } from './harness/curator.ts'
import { serverUnderTest, reference, Server } from './harness/servers.ts'

const ROUNDS = 20

interface Fixture {
  server: Server
  clients: Client[]
}

function testsOfLocks(fixture: Fixture): void {
  const increment = async (client: Client): Promise<void> => {
    const { data } = await client.getData('/counter')
    await client.setData('/counter', utf8.encode(String(Number(utf8.decode(data)) + 1)), { idempotent: true })
  }
  /** Curator and two Zabra clients increment a counter without versions in turns, so that two concurrent holders would lose a count. */
  const takeTurns = async (part: string, turn: (client: Client) => Promise<unknown>): Promise<void> => {
    await fixture.clients[0]!.create('/counter', { data: utf8.encode('0') })
    const curator = await startCurator(fixture.server.address, part, ROUNDS)
    curator.proceed()
    const own = fixture.clients.map(async (client) => {
      for (let round = 0; round < ROUNDS; round++) await turn(client)
    })
    await Promise.all([...own, curator.done])
    const { data } = await fixture.clients[0]!.getData('/counter')
    expect(Number(utf8.decode(data))).toBe(3 * ROUNDS)
    await fixture.clients[0]!.delete('/counter')
  }
  const children = async (path: string): Promise<readonly string[]> =>
    (await fixture.clients[0]!.exists(path)) === undefined
      ? []
      : (await fixture.clients[0]!.getChildren(path)).children

  it.each(['curator', 'recipe'] as const)('Mutex excludes Curator, with the naming %s', async (naming) => {
    await takeTurns('mutex', (client) => new Mutex(client, '/lock', { naming }).run(() => increment(client)))
    expect(await children('/lock')).toEqual([])
  })

  it('ReadWriteLock excludes writers of Curator', async () => {
    await takeTurns('rw', async (client) => {
      const lock = new ReadWriteLock(client, '/rw', { naming: 'curator' })
      await lock.write.run(() => increment(client))
      await lock.read.run(async () => {
        const before = await client.getData('/counter')
        expect((await client.getData('/counter')).stat.mzxid).toBe(before.stat.mzxid)
      })
    })
    expect(await children('/rw')).toEqual([])
  })

  it('Semaphore shares its permits with Curator', async () => {
    const options = { permits: 1, naming: 'curator' } as const
    await takeTurns('semaphore', (client) =>
      new Semaphore(client, '/s', options).run(() => increment(client)),
    )
    expect([...(await children('/s/leases')), ...(await children('/s/locks'))]).toEqual([])
  })

  it('LeaderElection elects one leader at a time with Curator', async () => {
    await takeTurns('election', (client) =>
      new LeaderElection(client, '/e', { naming: 'curator' }).lead(() => increment(client)),
    )
    expect(await children('/e')).toEqual([])
  })
}

function testsOfSharedData(fixture: Fixture): void {
  it('Counter and Curator add to the same counter', async () => {
    const curator = await startCurator(fixture.server.address, 'counter', ROUNDS)
    curator.proceed()
    const counts = fixture.clients.map(async (client) => {
      const counter = new Counter(client, '/count', { format: 8 })
      for (let n = 0; n < ROUNDS; n++) await counter.add()
    })
    await Promise.all([...counts, curator.done])
    expect(await new Counter(fixture.clients[0]!, '/count', { format: 8 }).get()).toBe(BigInt(3 * ROUNDS))
  })

  it('Barrier and Curator wait for each other', async () => {
    const [client] = fixture.clients as [Client, Client]
    const curator = await startCurator(fixture.server.address, 'barrier', 1)
    curator.proceed()
    await curator.waitForLine('created')
    let through = false
    const waiting = new Barrier(client, '/barrier').wait().then(() => (through = true))
    await client.sync('/')
    expect(through).toBe(false)
    curator.proceed()
    await Promise.all([waiting, curator.done])
    const own = new Barrier(client, '/barrier')
    await own.set()
    const waiter = await startCurator(fixture.server.address, 'wait', 1)
    waiter.proceed()
    await waiter.waitForLine('waiting')
    expect(waiter.lines).not.toContain('through')
    await own.remove()
    await waiter.done
  })

  it('Queue delivers each item once, to Zabra or to Curator', async () => {
    const [client] = fixture.clients as [Client, Client]
    const codec = curatorItems(utf8)
    const queue = new Queue(client, '/queue', { codec, naming: 'curator' })
    const curator = await startCurator(fixture.server.address, 'queue', ROUNDS)
    for (let n = 0; n < ROUNDS; n++) await queue.put([`own-${n}`], { priority: (n % 3) - 1 })
    const got: string[] = []
    const stop = new AbortController()
    const receiving = (async () => {
      for await (const message of queue.receive({ signal: stop.signal })) {
        got.push(...message.value)
        await message.ack()
      }
    })()
    receiving.catch(() => {})
    curator.proceed()
    await curator.waitForLine('put')
    while ((await queue.size()) > 0) await client.sync('/')
    stop.abort()
    await receiving
    curator.proceed()
    await curator.done
    const gotByCurator = curator.lines.filter((line) => line.startsWith('got ')).map((line) => line.slice(4))
    const all = ['own', 'curator'].flatMap((who) => Array.from({ length: ROUNDS }, (_, n) => `${who}-${n}`))
    expect([...got, ...gotByCurator].toSorted()).toEqual(all.toSorted())
    expect([...(await client.getChildren('/queue.queue/claims')).children]).toEqual([])
  })

  it("ServiceDiscovery and Curator read all fields of each other's instances", async () => {
    const [client] = fixture.clients as [Client, Client]
    const discovery = new ServiceDiscovery<Record<string, string>>(client, '/services')
    const curator = await startCurator(fixture.server.address, 'discovery', 1)
    curator.proceed()
    await curator.waitForLine('registered')
    const provider = await discovery.provider('api')
    expect(provider.next()).toMatchObject({
      id: 'curator',
      address: '10.0.0.1',
      port: 8080,
      sslPort: 8443,
      payload: { zone: 'java' },
      serviceType: 'DYNAMIC',
      enabled: true,
    })
    expect(uriOf(provider.next()!)).toBe('https://10.0.0.1:8443/v1')
    const own = await discovery.register({
      name: 'api',
      id: 'zabra',
      address: '10.0.0.9',
      port: 90,
      payload: { zone: 'node' },
      uriSpec: uriSpec('{scheme}://{address}:{port}/{id}'),
    })
    curator.proceed()
    await curator.waitForLine('updated')
    expect(curator.lines).toContain('found zabra 10.0.0.9 90 null')
    expect(curator.lines).toContain('more node DYNAMIC true')
    expect(curator.lines).toContain(`uri http://10.0.0.9:90/zabra ${own.instance.registrationTimeUTC}`)
    // Curator's update is acknowledged; the event reaches this client before the reply of the sync.
    await client.sync('/services')
    expect(await discovery.instances('api')).toMatchObject([
      { id: 'curator', address: '10.0.0.2', port: 8081, payload: undefined },
      { id: 'zabra' },
    ])
    curator.proceed()
    await curator.done
    expect((await discovery.instances('api')).map(({ id }) => id)).toEqual(['zabra'])
    await discovery.close()
  })
}

describeWith(['apache', 'curator'], 'recipes with Curator', () => {
  for (const kind of [reference, serverUnderTest]) {
    describe(`on ${kind}`, () => {
      const fixture = { clients: [] as Client[] } as unknown as Fixture
      beforeAll(async () => {
        fixture.server = await Server.start({ kind })
      })
      afterAll(() => fixture.server.stop())
      beforeEach(async () => {
        const servers = fixture.server.address
        fixture.clients = await Promise.all(
          [1, 2].map(() => connect({ servers, signal: AbortSignal.timeout(15_000) })),
        )
      })
      afterEach(() => Promise.all(fixture.clients.map((client) => client.close())))
      testsOfLocks(fixture)
      testsOfSharedData(fixture)
    })
  }
})
