import { resolve } from 'node:path'
import { connect, utf8, type Client } from '@zabra/client'
import { Barrier, Counter, Group, Party, Queue, TreeCache, DoubleBarrier } from '@zabra/recipes'
import { TwoPhaseCommit } from '@zabra/recipes/two-phase-commit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { describeWith, python } from './harness/requirements.ts'
import { ScriptedPeer } from './harness/scripted-peer.ts'
import { serverUnderTest, reference, Server } from './harness/servers.ts'

const script = resolve(import.meta.dirname, '../python/data.py')

/** Starts `python/data.py` in one of its scenarios. Resolves when kazoo is connected. */
const startKazoo = (server: Server, scenario: string): Promise<ScriptedPeer> =>
  ScriptedPeer.start(python, [script, server.address, scenario])

const suites = (server: () => Server, clientOf: () => Client): void => {
  it('Queue delivers each message once, to Zabra or to kazoo', async () => {
    const kazoo = await startKazoo(server(), 'queue')
    const queue = new Queue(clientOf(), '/queue', { codec: utf8, naming: 'kazoo' })
    for (let n = 0; n < 20; n++) await queue.put(`own-${n}`, { priority: 100 + (n % 3) })
    const got: string[] = []
    const stop = new AbortController()
    const receiving = (async () => {
      for await (const message of queue.receive({ signal: stop.signal })) {
        got.push(message.value)
        await message.ack()
      }
    })()
    receiving.catch(() => {})
    kazoo.proceed()
    await kazoo.done
    expect(await queue.size()).toBe(0)
    stop.abort()
    await receiving
    const gotByKazoo = kazoo.lines.filter((line) => line.startsWith('got ')).map((line) => line.slice(4))
    const all = ['own', 'kazoo'].flatMap((who) => Array.from({ length: 20 }, (_, n) => `${who}-${n}`))
    expect([...got, ...gotByKazoo].toSorted()).toEqual(all.toSorted())
    expect(got.length).toBeGreaterThan(0)
    expect((await clientOf().getChildren('/queue/taken')).children).toEqual([])
  })

  it('Queue delivers each item of a plain queue once, to Zabra or to kazoo', async () => {
    const kazoo = await startKazoo(server(), 'plain')
    const queue = new Queue(clientOf(), '/plain', { codec: utf8, naming: 'kazooPlain' })
    for (let n = 0; n < 20; n++) await queue.put(`own-${n}`, { priority: 100 + (n % 3) })
    kazoo.proceed()
    const got: string[] = []
    // kazoo may take any number of them, so this takes until the queue stays empty.
    const stop = new AbortController()
    const taking = (async () => {
      for (;;) got.push(await queue.take({ signal: stop.signal }))
    })()
    taking.catch(() => {})
    await kazoo.done
    while ((await queue.size()) > 0) await clientOf().sync('/')
    stop.abort()
    await expect(taking).rejects.toMatchObject({ name: 'AbortError' })
    const gotByKazoo = kazoo.lines.filter((line) => line.startsWith('got ')).map((line) => line.slice(4))
    const all = ['own', 'kazoo'].flatMap((who) => Array.from({ length: 20 }, (_, n) => `${who}-${n}`))
    expect([...got, ...gotByKazoo].toSorted()).toEqual(all.toSorted())
  })

  it('Party shares membership with the Party and the ShallowParty of kazoo', async () => {
    const mine = new Party(clientOf(), '/members')
    const shallow = new Party(clientOf(), '/shallow', { layout: 'shallow' })
    const members = [await mine.join('zabra'), await shallow.join('zabra')]
    const kazoo = await startKazoo(server(), 'parties')
    kazoo.proceed()
    await kazoo.waitForLine('members kazoo zabra')
    expect(await mine.members()).toEqual(['kazoo', 'zabra'])
    expect(await shallow.members()).toEqual(['kazoo', 'zabra'])
    kazoo.proceed()
    await kazoo.done
    expect(kazoo.lines.filter((line) => line === 'members kazoo zabra')).toHaveLength(2)
    expect(await mine.members()).toEqual(['zabra'])
    expect(await shallow.members()).toEqual(['zabra'])
    await Promise.all(members.map((member) => member.release()))
  })

  it('Counter and kazoo add to the same counter', async () => {
    const kazoo = await startKazoo(server(), 'counter')
    const counter = new Counter(clientOf(), '/counter')
    kazoo.proceed()
    for (let n = 0; n < 50; n++) await counter.add()
    await kazoo.done
    expect(await counter.get()).toBe(100n)
  })

  it('Barrier and kazoo wait for each other', async () => {
    const kazoo = await startKazoo(server(), 'barrier')
    kazoo.proceed()
    await kazoo.waitForLine('created')
    let through = false
    const waiting = new Barrier(clientOf(), '/barrier').wait().then(() => (through = true))
    await clientOf().sync('/')
    expect(through).toBe(false)
    kazoo.proceed()
    await waiting
    await kazoo.done
    const own = new Barrier(clientOf(), '/barrier')
    await own.set()
    const waiter = await startKazoo(server(), 'wait')
    waiter.proceed()
    await clientOf().sync('/')
    await own.remove()
    await waiter.done
    expect(waiter.lines).toContain('through')
  })

  it('TreeCache follows the writes of kazoo', async () => {
    const kazoo = await startKazoo(server(), 'tree')
    const cache = new TreeCache(clientOf(), '/tree', { codec: utf8 })
    await cache.ready
    const seen: string[] = []
    const following = (async () => {
      for await (const event of cache.events()) {
        if (!('path' in event)) continue
        seen.push(`${event.type} ${event.path}`)
        if (seen.includes('added /tree/b') && cache.get('/tree/a') === undefined) return
      }
    })()
    kazoo.proceed()
    await kazoo.done
    await following
    expect(cache.children('/tree')).toEqual(['b'])
    await cache.close()
  })

  it('Group lists the members of a party of kazoo', async () => {
    const kazoo = await startKazoo(server(), 'party')
    const group = new Group(clientOf(), '/party', { codec: utf8 })
    kazoo.proceed()
    await kazoo.waitForLine('joined')
    await clientOf().sync('/party')
    expect([...(await group.members()).values()]).toEqual(['kazoo'])
    kazoo.proceed()
    await kazoo.done
    await clientOf().sync('/party')
    expect([...(await group.members()).values()]).toEqual([])
  })

  it('Group, DoubleBarrier and twoPhaseCommit work on this server', async () => {
    const client = clientOf()
    const group = new Group(client, '/group', { codec: utf8 })
    await group.join('a', 'one')
    expect(await group.members()).toEqual(new Map([['a', 'one']]))
    await group.close()
    const rounds = [1, 2].map(() => new DoubleBarrier(client, '/rounds', { members: 2 }).enter())
    await Promise.all((await Promise.all(rounds)).map((inside) => inside.release()))
    const applied: string[] = []
    const site = await new TwoPhaseCommit(client, '/tx').join('a', {
      prepare: () => Promise.resolve('commit'),
      commit: ({ id }) => Promise.resolve(void applied.push(id)),
      abort: () => Promise.resolve(),
    })
    const payload = utf8.encode('x')
    expect(
      await new TwoPhaseCommit(client, '/tx').run({ participants: ['a'], payload, deadlineMs: 10_000 }),
    ).toBe('committed')
    await site.release()
  })
}

describeWith(['apache', 'kazoo'], 'recipes with kazoo', () => {
  for (const kind of [reference, serverUnderTest]) {
    describe(`on ${kind}`, () => {
      let server: Server
      let client: Client
      beforeAll(async () => {
        server = await Server.start({ kind })
      })
      afterAll(() => server.stop())
      beforeEach(async () => {
        client = await connect({ servers: server.address, signal: AbortSignal.timeout(15_000) })
      })
      afterEach(() => client.close())
      suites(
        () => server,
        () => client,
      )
    })
  }
})
