import { OpCode, writeMultiRequest } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import type { ServerSettings } from '../settings/index.ts'
import { interleavePromises, serviceOf, spendTime, watchFalls } from '../testing/many-connections.ts'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import type { ClientChannel } from './client-channel.ts'
import type { ClientService } from './client-service.ts'
import { ITEMS_PER_TURN } from '../core/in-slices.ts'

const MANY = 250

async function start(
  settings: Partial<ServerSettings> = {},
): Promise<{ fixture: TestServer; service: ClientService; clients: RawClient[] }> {
  const fixture = await TestServer.start({ maxClientCnxns: 0, ...settings })
  const clients = await Promise.all(Array.from({ length: MANY }, () => fixture.connect()))
  return { fixture, service: serviceOf(fixture.server), clients }
}

describe('a server with many connections', () => {
  it('closes a hundred of them in a turn when its role ends, and answers none of them from then on', async () => {
    const { fixture, service, clients } = await start()
    const mostClosed = watchFalls(fixture.clock, () => service.connections.size)
    let isEnded = false
    void service.endRole('Closed: the role is over').then(() => (isEnded = true))
    expect(service.connections.size).toBe(MANY - ITEMS_PER_TURN)
    for (const client of clients) client.read(1, OpCode.exists, '/')
    await fixture.untilIdle()
    expect([isEnded, service.connections.size, mostClosed()]).toEqual([true, 0, ITEMS_PER_TURN])
    expect(clients.filter(({ closed, frames }) => !closed || frames.length > 0)).toEqual([])
  })

  it('closes a hundred of them in a turn when it stops, after the replies to the requests of all', async () => {
    const { fixture, service, clients } = await start()
    const isOpen = (): number => [...service.connections].filter(({ phase }) => phase === 'open').length
    const unpaused = (): number => [...service.connections].filter(({ flow }) => !flow.isPausedFor(16)).length
    const mostPaused = watchFalls(fixture.clock, unpaused)
    const mostClosed = watchFalls(fixture.clock, isOpen)
    for (const client of clients) client.create(1, '/node-', 2)
    fixture.clock.advance(0)
    await fixture.stop()
    expect([mostPaused(), mostClosed()]).toEqual([ITEMS_PER_TURN, ITEMS_PER_TURN])
    for (const client of clients) expect([client.takeReceived(), client.closed]).toEqual([['1:0'], true])
  })

  it('closes a hundred of them in a turn in each step of a drain', async () => {
    const { fixture, service } = await start()
    const isOpen = (): number => [...service.connections].filter(({ phase }) => phase === 'open').length
    const mostClosed = watchFalls(fixture.clock, isOpen)
    ;(fixture.server as unknown as { drain(ms: number): void }).drain(200)
    await fixture.advance(100)
    expect(service.connections.size).toBe(MANY / 2)
    await fixture.advance(100)
    expect([service.connections.size, mostClosed()]).toEqual([0, ITEMS_PER_TURN])
  })

  it('resets the statistics of a hundred of them in a turn', async () => {
    const { fixture, service } = await start()
    const counted = (): number =>
      [...service.connections].filter(({ replyWriter }) => replyWriter.stats.sent > 0).length
    expect(counted()).toBe(MANY)
    const mostReset = watchFalls(fixture.clock, counted)
    expect(await fixture.command('crst')).toBe('Connection stats reset.\n')
    expect([counted(), mostReset()]).toEqual([0, ITEMS_PER_TURN])
  })

  it('reads a hundred of those that were throttled in a turn, once their writes are done', async () => {
    const { fixture, service, clients } = await start({ globalOutstandingLimit: 10 })
    const release = fixture.blockDisk()
    for (const client of clients) client.create(1, '/node-', 2)
    await fixture.untilIdle()
    expect(service.throttler.size).toBe(MANY - 10)
    const mostReleased = watchFalls(fixture.clock, () => service.throttler.size)
    release()
    for (const client of clients) client.create(2, '/node-', 2)
    await fixture.untilIdle()
    expect([service.throttler.size, mostReleased()]).toEqual([0, ITEMS_PER_TURN])
    for (const client of clients) expect(client.takeReceived()).toEqual(['1:0', '2:0'])
  })

  it('takes 2 ms of a turn to extend the sessions of those that are throttled', async () => {
    const { fixture, service, clients } = await start({ globalOutstandingLimit: 10 })
    fixture.blockDisk()
    for (const client of clients) client.create(1, '/node-', 2)
    await fixture.untilIdle()
    const old = (): number => [...service.sessions].filter(({ deadline }) => deadline < now + 10_000).length
    fixture.clock.advance(500)
    const now = fixture.clock.monotonic()
    expect(old()).toBe(MANY)
    const spend = spendTime(fixture.clock)
    const touch = service.sessions.touch.bind(service.sessions)
    service.sessions.touch = (session, at) => {
      touch(session, at)
      spend(0.1)
    }
    const mostTouched = watchFalls(fixture.clock, old)
    fixture.clock.immediate(() => service.runTurn(() => service.touchThrottled()))
    await fixture.untilIdle()
    expect([old(), mostTouched()]).toEqual([10, 20])
  })

  it('receives their long requests in turns, and answers all of them', async () => {
    const { fixture, service, clients } = await start()
    let mostWaiting = 0
    const immediate = fixture.clock.immediate.bind(fixture.clock)
    fixture.clock.immediate = (action) =>
      immediate(() => {
        action()
        mostWaiting = Math.max(mostWaiting, [...service.receiveTurns.waiting].length)
      })
    for (const client of clients)
      client.ask(1, OpCode.exists, (w) => {
        w.string(`/${'x'.repeat(300_000)}`)
        w.bool(false)
      })
    await fixture.untilIdle()
    expect([mostWaiting > MANY / 2, [...service.receiveTurns.waiting]]).toEqual([true, []])
    for (const client of clients) expect(client.takeReceived()).toEqual(['1:-101'])
  })

  it('answers reads of a hundred of them in a turn after a large transaction, none of which sees a later write', async () => {
    const { fixture, service, clients } = await start()
    const [large, ...others] = clients as [RawClient, ...RawClient[]]
    interleavePromises(fixture.clock)
    const mostProcessed = watchFalls(fixture.clock, () => service.deferredReads.size)
    const immediate = fixture.clock.immediate.bind(fixture.clock)
    let isSent = false
    fixture.clock.immediate = (action) =>
      immediate(() => {
        action()
        if (isSent || !service.tree.isApplying) return
        isSent = true
        for (const [index, client] of others.entries())
          client.batch(() => {
            client.read(1, OpCode.exists, `/later-${index}`)
            client.create(2, `/later-${index}`)
            client.read(3, OpCode.exists, `/later-${index}`)
          })
      })
    large.ask(1, OpCode.multi, (w) =>
      writeMultiRequest(
        w,
        Array.from({ length: 5000 }, () => ({ type: OpCode.check, path: '/', version: -1 }) as const),
      ),
    )
    await fixture.untilIdle()
    expect([service.deferredReads.size, mostProcessed()]).toEqual([0, ITEMS_PER_TURN])
    for (const client of others) expect(client.takeReceived()).toEqual(['1:-101', '2:0', '3:0'])
  })
})

/** Has connections that only count their events watch a path. Returns how many of them have none yet. */
function addWatchers(service: ClientService, path: string, count: number): () => number {
  let left = count
  for (let added = 0; added < count; added++)
    service.watches.watchData(
      { watchedPaths: new Set<string>(), identities: [], deliver: () => left-- } as unknown as ClientChannel,
      path,
    )
  return () => left
}

it('a node that very many watch notifies hundreds of them in a turn, before any client sees that it has changed', async () => {
  const { fixture, client } = await TestServer.withClient()
  const reader = await fixture.connect()
  client.create(1, '/a')
  await fixture.untilIdle()
  client.frames.length = 0
  const left = addWatchers(serviceOf(fixture.server), '/a', 5000)
  const mostNotified = watchFalls(fixture.clock, left)
  const immediate = fixture.clock.immediate.bind(fixture.clock)
  let isSent = false
  let isEarly = false
  fixture.clock.immediate = (action) =>
    immediate(() => {
      action()
      if (left() < 5000 && !isSent) {
        isSent = true
        reader.read(1, OpCode.exists, '/a')
      }
      isEarly ||= left() > 0 && client.frames.length + reader.frames.length > 0
    })
  client.set(2, '/a', 'x')
  client.set(3, '/a', 'y')
  await fixture.untilIdle()
  expect([left(), mostNotified(), isSent, isEarly]).toEqual([0, 900, true, false])
  expect([client.takeReceived(), reader.takeReceived()]).toEqual([['2:0', '3:0'], ['1:0']])
})
