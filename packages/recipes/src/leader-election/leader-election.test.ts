import { ClosedError, type Client } from '@zabra/client/core'
import { SeededRandom } from '@zabra/runtime'
import { describe, expect, it, vi } from 'vitest'
import { client as a, setupEachTest, meters, other as b, run, world } from '../testing/setup.ts'
import { rejectionOf } from '../testing/world.ts'
import { decodeLeader, encodeLeader, type Leader } from './announcement.ts'
import type { LockHandle } from '../handles/types.ts'
import { LeaderElection } from './leader-election.ts'

setupEachTest('a', 'a')
const line = async (): Promise<string[]> => (await run(a.getChildren('/e'))).children
const of = (client: Client, id: string, announce = false): LeaderElection =>
  new LeaderElection(client, '/e', { id, announce })

const first = async (
  election: LeaderElection,
): Promise<{ leadership: LockHandle; rest: AsyncGenerator<LockHandle> }> => {
  const rest = election.leadership()
  const { value } = await run(rest.next())
  return { leadership: value as LockHandle, rest }
}

describe('a leader election', () => {
  it('has one leader at a time, followed by the participant that has waited longest', async () => {
    const one = await first(of(a, 'a'))
    const rest = of(b, 'b').leadership()
    const next = rest.next()
    await world.settle()
    meters[1]!.take()
    await run(one.leadership.release())
    const second = (await run(next)).value as LockHandle
    await world.settle()
    expect(meters[1]!.take()).toEqual({ requests: ['getChildren'], events: ['nodeDeleted'] })
    expect(second.token).toBeGreaterThan(one.leadership.token)
    second.assertHeld()
    await run(rest.return(undefined))
    await run(one.rest.return(undefined))
    expect(await line()).toEqual([])
    expect(world.server.stats().watches).toBe(0)
  })

  it('causes no warning of Node when many callers wait for leadership or observe it', async () => {
    const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const election = of(a, 'a')
    const waiting = Array.from({ length: 20 }, () => election.acquire().catch(() => {}))
    const observers = Array.from({ length: 20 }, () => world.collect(election.observe()))
    await world.settle()
    expect(observers.every((seen) => seen.length > 0)).toBe(true)
    expect(warning).not.toHaveBeenCalled()
    warning.mockRestore()
    await run(election.close())
    await run(Promise.all(waiting))
  })

  it('returns leadership after a short break with the same token and no new znode (CURATOR-644, CURATOR-645)', async () => {
    const { leadership, rest } = await first(of(a, 'a'))
    const before = await line()
    const again = rest.next()
    world.connections[0]!.cut()
    await world.settle()
    expect(leadership.signal.reason).toMatchObject({ reason: 'suspended' })
    const second = (await world.within(5000, again)).value as LockHandle
    expect(second.token).toBe(leadership.token)
    second.assertHeld()
    expect(await line()).toEqual(before)
    await run(leadership.release())
    second.assertHeld()
    expect(await line()).toEqual(before)
    await run(rest.return(undefined))
    expect(await line()).toEqual([])
  })

  it('does not lead with the znode of an expired session (CURATOR-696, CURATOR-620, Curator issue 1211)', async () => {
    const { leadership, rest } = await first(of(a, 'a'))
    const again = rest.next()
    const goOn = world.refuseConnections()
    world.connections[0]!.cut()
    await world.advance(17_000)
    goOn()
    const other = await first(of(b, 'b'))
    await world.advance(20_000)
    expect(await line()).toHaveLength(2)
    await run(other.rest.return(undefined))
    const second = (await run(again)).value as LockHandle
    expect(second.token).toBeGreaterThan(other.leadership.token)
    expect(leadership.signal.aborted).toBe(true)
    await run(rest.return(undefined))
  })

  it('continues when another client deletes the znode or the whole directory', async () => {
    const { leadership, rest } = await first(of(a, 'a'))
    const again = rest.next()
    await run(
      b.multi([
        { op: 'delete', path: leadership.path },
        { op: 'delete', path: '/e' },
      ]),
    )
    await world.advance(20)
    const second = (await run(again)).value as LockHandle
    expect(second.token).toBeGreaterThan(leadership.token)
    expect(leadership.signal.reason).toMatchObject({ reason: 'nodeDeleted' })
    await run(rest.return(undefined))
  })

  it('lets a waiter whose znode is deleted take part with a new one', async () => {
    const one = await first(of(a, 'a'))
    const rest = of(b, 'b').leadership()
    const next = rest.next()
    await world.settle()
    const waiting = (await line()).find((name) => !one.leadership.path.endsWith(name))!
    await run(a.delete(`/e/${waiting}`))
    await run(one.rest.return(undefined))
    ;((await run(next)).value as LockHandle).assertHeld()
    await run(rest.return(undefined))
  })

  it('leaves nothing behind when it is stopped while waiting, leading or as a whole', async () => {
    const election = of(a, 'a')
    const one = await first(election)
    const stop = new AbortController()
    const waiting = of(b, 'b').leadership({ signal: stop.signal }).next()
    await world.settle()
    stop.abort()
    expect(await run(waiting)).toEqual({ done: true, value: undefined })
    await world.settle()
    expect(await line()).toHaveLength(1)
    await run(election[Symbol.asyncDispose]())
    expect(one.leadership.signal.aborted).toBe(true)
    expect(await line()).toEqual([])
    expect(await run(one.rest.next())).toEqual({ done: true, value: undefined })
  })

  it('ends a waiting acquire when it is closed, leaves the queue, and refuses acquire from then on', async () => {
    const leader = await first(of(a, 'a'))
    const election = of(b, 'b')
    const waiting = rejectionOf(election.acquire())
    const limited = rejectionOf(election.acquire({ timeoutMs: 3_600_000 }))
    await world.settle()
    expect(await line()).toHaveLength(3)
    await run(election.close())
    const closed = { code: 'ABORTED', message: 'acquire /e: the election was closed' }
    expect(await run(waiting)).toMatchObject(closed)
    expect(await run(limited)).toMatchObject(closed)
    expect(await line()).toHaveLength(1)
    expect(await run(rejectionOf(election.acquire()))).toMatchObject(closed)
    await run(leader.rest.return(undefined))
    expect(await line()).toEqual([])
  })

  it('ends with an error when its client ends', async () => {
    const holder = await first(of(a, 'a'))
    const waiting = rejectionOf(of(b, 'b').leadership().next())
    await world.settle()
    const closed = b.close()
    await world.settle()
    await closed
    expect(await run(waiting)).toBeInstanceOf(ClosedError)
    await run(holder.rest.return(undefined))
  })
})

describe('a lead body', () => {
  it('runs as leader, and the next participant leads when it has settled', async () => {
    const order: string[] = []
    const body = (id: string) => async (leadership: LockHandle) => {
      leadership.assertHeld()
      order.push(id)
    }
    await run(Promise.all([of(a, 'a').lead(body('a')), of(b, 'b').lead(body('b'))]))
    expect(order.toSorted()).toEqual(['a', 'b'])
    expect(await line()).toEqual([])
  })

  it('never runs twice at once: the next leadership waits for the body of the lost one', async () => {
    let running = 0
    let most = 0
    const ends: (() => void)[] = []
    const stop = new AbortController()
    const done = of(a, 'a').lead(
      async () => {
        most = Math.max(most, ++running)
        await new Promise<void>((resolve) => ends.push(resolve))
        running--
      },
      { requeue: true, signal: stop.signal },
    )
    await world.settle()
    world.connections[0]!.cut()
    await world.advance(5000)
    expect(ends).toHaveLength(1)
    ends[0]!()
    await world.advance(1000)
    expect(ends).toHaveLength(2)
    stop.abort()
    ends[1]!()
    await run(done)
    expect(most).toBe(1)
  })

  it('propagates its error, but with requeue continues after a loss', async () => {
    await expect(run(of(a, 'a').lead(() => Promise.reject(new Error('body'))))).rejects.toThrow('body')
    const stop = new AbortController()
    let begun = 0
    const done = of(a, 'a').lead(
      async ({ signal }) => {
        begun++
        await new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        )
      },
      { requeue: true, signal: stop.signal },
    )
    await world.settle()
    world.connections[0]!.cut()
    await world.advance(5000)
    expect(begun).toBe(2)
    stop.abort()
    await run(done)
    expect(await line()).toEqual([])
  })
})

describe.each([false, true])('an observer (announce: %s)', (announce) => {
  it('sees every leader that stays, and when there is none', async () => {
    const seen: (Leader | undefined)[] = []
    const stop = new AbortController()
    const watcher = (async () => {
      for await (const leader of of(a, 'watcher', announce).observe({ signal: stop.signal }))
        seen.push(leader)
    })()
    await world.settle()
    const one = await first(of(a, 'one', announce))
    const rest = of(b, 'two', announce).leadership()
    const next = rest.next()
    await world.settle()
    await run(one.leadership.release())
    const two = (await run(next)).value as LockHandle
    await world.settle()
    await run(rest.return(undefined))
    await run(one.rest.return(undefined))
    await world.settle()
    stop.abort()
    await run(watcher)
    const ids = seen.map((leader) => leader?.id)
    expect(ids.filter((id) => id !== undefined)).toEqual(['one', 'two'])
    expect([ids[0], ids.at(-1)]).toEqual([undefined, undefined])
    expect(seen.find((leader) => leader?.id === 'two')?.token).toBe(two.token)
    expect(world.server.stats().watches).toBe(0)
  })

  it('costs one notification and one read per change of leader', async () => {
    const one = await first(of(b, 'one', announce))
    const stop = new AbortController()
    const seen = world.collect(of(a, 'watcher', announce).observe({ signal: stop.signal }))
    await world.settle()
    meters[0]!.take()
    await run(one.rest.return(undefined))
    await world.settle()
    const { requests, events } = meters[0]!.take()
    expect(events).toEqual(['nodeDeleted'])
    expect(requests.length).toBeLessThanOrEqual(2)
    expect(seen).toHaveLength(2)
    stop.abort()
    await world.settle()
  })
})

describe('an announcement', () => {
  it('round-trips, and foreign data decodes to no leader', () => {
    const leader = { id: 'a', token: 12345678901234567890n }
    expect(decodeLeader(encodeLeader(leader))).toEqual(leader)
    for (const data of ['x', '{}', 'null', '5'])
      expect(decodeLeader(new TextEncoder().encode(data))).toBeUndefined()
  })

  it('that the servers refuse ends the participation instead of being tried without end', async () => {
    await run(b.create('/e/leader/child', { parents: 'persistent' }))
    let requests = 0
    world.faults.toServer = (chunk) => (++requests > 100 ? undefined : chunk)
    const failed = rejectionOf(of(a, 'one', true).lead(() => Promise.resolve()))
    expect(await world.within(5000, failed)).toMatchObject({ name: 'NotEmptyError' })
    delete world.faults.toServer
    await world.advance(100)
    expect(await line()).toEqual(['leader'])
  })

  it('is removed by a leader that resigns after another client has deleted its znode', async () => {
    const held = await run(of(a, 'one', true).acquire())
    await run(b.delete(held.path))
    await world.advance(50)
    await run(held.release())
    expect(await line()).toEqual([])
    const one = await first(of(a, 'one', true))
    await run(b.delete(one.leadership.path))
    await world.advance(50)
    await run(one.rest.return(undefined))
    expect(await line()).toEqual([])
  })

  it('is removed by a participant that is stopped while it waits to lead again', async () => {
    const stop = new AbortController()
    const terms = of(a, 'one', true).leadership({ signal: stop.signal })
    await run(terms.next())
    const goOn = world.refuseConnections()
    world.connections[0]!.cut()
    const again = terms.next()
    await world.settle()
    stop.abort()
    goOn()
    await world.advance(5000)
    expect((await run(again)).done).toBe(true)
    expect(await line()).toEqual([])
  })

  it('is removed by a participant that is stopped before it has a znode again', async () => {
    const stop = new AbortController()
    const terms = of(a, 'one', true).leadership({ signal: stop.signal })
    const { path } = (await run(terms.next())).value!
    const again = terms.next()
    await world.advance(50)
    // From here on no reply arrives at the participant.
    const held: (() => void)[] = []
    world.faults.toClient = (chunk, connection) => {
      if (connection !== world.connections[0]) return chunk
      held.push(() => connection.deliver(chunk))
      return undefined
    }
    await run(b.delete(path))
    held.shift()!()
    await world.settle()
    stop.abort()
    delete world.faults.toClient
    for (const deliver of held) deliver()
    expect((await run(again)).done).toBe(true)
    await world.settle()
    expect(await line()).toEqual([])
  })

  it('that another client deletes is written again while its leader leads, and not after that', async () => {
    const one = await first(of(a, 'one', true))
    for (let n = 0; n < 3; n++) {
      await run(b.delete('/e/leader'))
      await world.advance(100)
      expect(decodeLeader((await run(b.getData('/e/leader'))).data)).toMatchObject({ id: 'one' })
    }
    await run(one.leadership.release())
    expect(await line()).toEqual([])
    await run(b.create('/e/leader', { mode: 'ephemeral' }))
    await run(b.delete('/e/leader'))
    await world.advance(100)
    expect(await line()).toEqual([])
    await run(one.rest.return(undefined))
    expect(world.server.stats().watches).toBe(0)
  })

  it.each(['', 'no JSON', '\uffff', '{"id":"two","token":"1"}', '{"id":"two","token":"<own>"}'])(
    'over which another client writes %j is written again',
    async (data) => {
      const one = await first(of(a, 'one', true))
      await run(b.setData('/e/leader', data.replace('<own>', String(one.leadership.token))))
      await world.advance(100)
      expect(decodeLeader((await run(b.getData('/e/leader'))).data)).toMatchObject({ id: 'one' })
      await run(one.leadership.release())
      expect(await line()).toEqual([])
      await run(one.rest.return(undefined))
    },
  )

  it('of a leader whose znode was deleted is replaced by that of the next leader', async () => {
    const one = await first(of(a, 'one', true))
    const rest = of(b, 'two', true).leadership()
    const next = rest.next()
    await world.settle()
    await run(b.delete(one.leadership.path))
    await run(next)
    expect(decodeLeader((await run(b.getData('/e/leader'))).data)).toMatchObject({ id: 'two' })
    await run(one.leadership.release())
    expect(decodeLeader((await run(b.getData('/e/leader'))).data)).toMatchObject({ id: 'two' })
    await run(rest.return(undefined))
    await run(one.rest.return(undefined))
    expect(await line()).toEqual([])
  })
})

it('a participant that stops after losing leadership removes its announcement', async () => {
  const stop = new AbortController()
  const terms = of(a, 'one', true).leadership({ signal: stop.signal })
  const leadership = (await run(terms.next())).value as LockHandle
  const goOn = world.refuseConnections()
  world.connections[0]!.cut()
  await world.settle()
  expect(leadership.signal.aborted).toBe(true)
  stop.abort()
  goOn()
  await world.advance(5000)
  expect(a.state).toBe('connected')
  expect(await line()).toEqual([])
})

describe('an election of which some participants announce themselves', () => {
  const silent: Record<string, () => Promise<unknown>> = {
    'a participant without announce': () => of(b, 'two').acquire(),
    'a participant of kazoo': () =>
      b.create('/e/0123456789abcdef0123456789abcdef__lock__', {
        mode: 'ephemeralSequential',
        protected: false,
        data: 'two',
      }),
    'a participant of Curator': () =>
      b.create('/e/_c_00000000-0000-0000-0000-000000000000-latch-', {
        mode: 'ephemeralSequential',
        protected: false,
        data: 'two',
      }),
  }
  const announced = async (): Promise<string | undefined> => {
    if ((await run(b.exists('/e/leader'))) === undefined) return undefined
    return decodeLeader((await run(b.getData('/e/leader'))).data)?.id
  }

  it.each(Object.entries(silent))('shows no leader once %s leads', async (_name, enter) => {
    const held = await run(of(a, 'one', true).acquire())
    const next = enter()
    await world.settle()
    const stop = new AbortController()
    const seen = world.collect(of(b, 'watcher', true).observe({ signal: stop.signal }))
    await run(b.delete(held.path))
    await run(next)
    await world.advance(100)
    expect(await announced()).toBeUndefined()
    expect(seen.map((leader) => leader?.id)).toEqual(['one', undefined])
    await run(held.release())
    expect(await line()).toHaveLength(1)
    stop.abort()
    await world.settle()
  })

  it('removes the announcement of a leader that was cut off when its znode was deleted', async () => {
    const terms = of(a, 'one', true).leadership()
    const { path } = (await run(terms.next())).value!
    const again = terms.next()
    const next = of(b, 'two').acquire()
    await world.advance(100)
    const goOn = world.refuseConnections()
    world.connections[0]!.cut()
    await world.settle()
    await run(b.delete(path))
    await run(next)
    expect(await announced()).toBe('one')
    goOn()
    await world.advance(5000)
    expect(await announced()).toBeUndefined()
    await run((await run(next)).release())
    await run(again)
    expect(await announced()).toBe('one')
    await run(terms.return(undefined))
    expect(await line()).toEqual([])
  })

  it('removes the announcement of a leader that was resigning when its znode was deleted', async () => {
    const { path, ...held } = await run(
      of(a, 'one', true)
        .acquire()
        .then((one) => ({ path: one.path, release: () => one.release() })),
    )
    const next = of(b, 'two').acquire()
    await world.advance(100)
    let goOn = (): void => {}
    world.faults.toServer = (chunk, connection) => {
      if (!new TextDecoder().decode(chunk).includes('/e/leader')) return chunk
      delete world.faults.toServer
      goOn = world.refuseConnections()
      world.clock.immediate(() => connection.cut())
      return undefined
    }
    const released = held.release()
    await world.settle()
    await run(b.delete(path))
    await run(next)
    goOn()
    await world.within(5000, released)
    expect(await announced()).toBeUndefined()
  })

  it('removes the announcement with the release of a deposed leader that could not before', async () => {
    const held = await run(of(a, 'one', true).acquire())
    const next = of(b, 'two').acquire()
    await world.advance(100)
    world.answerWith(-102, {
      times: 1,
      matches: ({ frame }) => new TextDecoder().decode(frame).includes('/e/leader'),
    })
    await run(b.delete(held.path))
    await run(next)
    await world.advance(100)
    expect(held.signal.aborted).toBe(true)
    expect(await announced()).toBe('one')
    await run(held.release())
    expect(await announced()).toBeUndefined()
  })

  it('replaces an announcement that its ACL does not let it write', async () => {
    const acl = [{ scheme: 'world', id: 'anyone', perms: 1 }]
    await run(b.create('/e'))
    const one = await run(new LeaderElection(a, '/e', { id: 'one', announce: true, acl }).acquire())
    const next = new LeaderElection(b, '/e', { id: 'two', announce: true, acl }).acquire()
    await world.advance(100)
    const goOn = world.refuseConnections()
    world.connections[0]!.cut()
    await run(b.delete(one.path))
    await run((await run(next)).release())
    goOn()
  })

  it('shows each leader that announces itself, in any order', async () => {
    const order = [true, false, false, true, true, false, true]
    const elections = order.map((announce, n) => of(n % 2 === 0 ? a : b, String(n), announce))
    const turns: Promise<LockHandle>[] = []
    for (const election of elections) {
      turns.push(election.acquire())
      await world.settle()
    }
    for (const [n, turn] of turns.entries()) {
      const held = await run(turn)
      await world.settle()
      expect(await announced()).toBe(order[n] ? String(n) : undefined)
      // Every other one is deposed.
      if (n % 2 === 0) await run((n % 4 === 0 ? b : a).delete(held.path))
      else await run(held.release())
      await world.advance(100)
    }
    expect(await announced()).toBeUndefined()
  })

  it('keeps the announcement of a leader when its predecessor removes its own too late', async () => {
    const one = await run(of(a, 'one', true).acquire())
    const entering = of(b, 'two', true).acquire()
    await world.advance(100)
    // The first leader has read its announcement, and is about to remove it, before the second one replaces it.
    const held = new Map(world.connections.slice(0, 2).map((each) => [each, [] as Uint8Array[]]))
    const [first, second] = [...held.keys()]
    let sent = 0
    world.faults.toServer = (chunk, connection) => {
      const queue = held.get(connection)
      const isMulti = new DataView(chunk.buffer, chunk.byteOffset).getInt32(8) === 14
      const isAnnouncement = isMulti && new TextDecoder().decode(chunk).includes('/e/leader')
      // The first one withdraws its znode, which is gone, before.
      const isDue = isAnnouncement && (connection === second || sent++ > 0)
      if (queue === undefined || (queue.length === 0 && !isDue)) return chunk
      queue.push(chunk.slice())
      return undefined
    }
    const goOn = async (connection: typeof first): Promise<void> => {
      const queue = held.get(connection!)!
      held.delete(connection!)
      expect(queue.length).toBeGreaterThan(0)
      for (const chunk of queue) connection!.send(chunk)
      await world.settle()
    }
    const observer = await world.client()
    await run(observer.delete(one.path))
    await world.advance(100)
    await goOn(second)
    expect(await announced()).toBe('two')
    await goOn(first)
    const two = await run(entering)
    await world.advance(100)
    expect(await announced()).toBe('two')
    await run(one.release())
    expect(await announced()).toBe('two')
    await run(two.release())
    expect(await line()).toEqual([])
  })
})

describe('a leadership that is lost while it is announced', () => {
  /** Cuts the connection when the announcement is sent, and connects again after that. */
  function cutAtAnnouncement(): void {
    world.faults.toServer = (chunk, connection) => {
      if (!new TextDecoder().decode(chunk).includes('/e/leader')) return chunk
      delete world.faults.toServer
      world.clock.immediate(() => connection.cut())
      return undefined
    }
  }

  it('begins again, so that no body runs with a signal that has aborted', async () => {
    cutAtAnnouncement()
    const began: boolean[] = []
    const leading = of(a, 'one', true).lead(({ signal }) => Promise.resolve(void began.push(signal.aborted)))
    await world.within(20_000, leading)
    expect(began).toEqual([false])
    expect(await line()).toEqual([])
  })

  it('is not returned by acquire', async () => {
    cutAtAnnouncement()
    const held = await world.within(20_000, of(a, 'one', true).acquire())
    held.assertHeld()
    await run(held.release())
    expect(await line()).toEqual([])
  })

  it('holds no caller whose time is up', async () => {
    let restore = (): void => {}
    world.faults.toServer = (chunk, connection) => {
      if (!new TextDecoder().decode(chunk).includes('/e/leader')) return chunk
      restore = world.refuseConnections()
      world.clock.immediate(() => connection.cut())
      return undefined
    }
    const failed = rejectionOf(of(a, 'one', true).acquire({ timeoutMs: 500 }))
    expect(await world.within(1000, failed)).toMatchObject({ code: 'OPERATION_TIMEOUT' })
    delete world.faults.toServer
    restore()
    await world.advance(5000)
    expect(await line()).toEqual([])
  })
})

it('a leader keeps leading when all servers restart within its session timeout', async () => {
  const { leadership, rest } = await first(of(a, 'a', true))
  const again = rest.next()
  const waiting = of(b, 'b', true).leadership()
  const next = waiting.next()
  await world.settle()
  await world.stop()
  await world.restart()
  const second = (await world.within(10_000, again)).value as LockHandle
  expect(second.token).toBe(leadership.token)
  await world.advance(2000)
  await run(second.release())
  ;((await run(next)).value as LockHandle).assertHeld()
  await run(waiting.return(undefined))
  await run(rest.return(undefined))
  expect(await line()).toEqual([])
})

it('fifty participants lead in turn, with one notification each', async () => {
  const events: string[] = []
  const instrumentation = { event: ({ type }: { type: string }) => void events.push(type) }
  const all = new Map<string, Client>()
  const leading: string[] = []
  for (let i = 0; i < 50; i++) {
    const id = `p${i}`
    const client = await world.client({ instrumentation })
    all.set(id, client)
    void new LeaderElection(client, '/e', { id })
      .lead(async ({ signal }) => {
        leading.push(id)
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
      })
      .catch(() => {})
    await world.settle()
  }
  const random = new SeededRandom(5)
  const ended = new Set<string>()
  while (all.size > 0) {
    const ids = [...all.keys()]
    const id = random.below(2) === 0 ? leading.at(-1)! : ids[random.below(ids.length)]!
    const before = events.length
    const closed = all.get(id)!.close()
    all.delete(id)
    ended.add(id)
    await world.settle()
    await closed
    await world.settle()
    // One for the next contender, and one from the watch of a resigning leader.
    expect(events.length - before).toBeLessThanOrEqual(2)
    if (all.size > 0) expect(ended.has(leading.at(-1)!)).toBe(false)
  }
  expect(await line()).toEqual([])
})

it('an election lists its participants, the leader first', async () => {
  const election = new LeaderElection(a, '/list', { id: 'one' })
  expect(await run(election.participants())).toEqual([])
  const leading = election.leadership()
  await run(leading.next())
  const waiting = new LeaderElection(b, '/list', { id: 'two', announce: true }).leadership()
  const next = waiting.next()
  await world.settle()
  expect((await run(election.participants())).map(({ id, owner }) => [id, owner])).toEqual([
    ['one', a.session.id],
    ['two', b.session.id],
  ])
  await run(leading.return(undefined))
  await run(next)
  await run(waiting.return(undefined))
})
