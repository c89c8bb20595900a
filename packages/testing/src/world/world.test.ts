import type { Connection } from '@zabra/runtime'
import { describe, expect, test } from 'vitest'
import { jumpWallClock, setClockRate } from './clock-skew.ts'
import { SimulatedWorld } from './world.ts'

const it = test.extend('world', () => new SimulatedWorld(1)).extend('host', ({ world }) => world.addHost('a'))

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (data: Uint8Array): string => new TextDecoder().decode(data)

/** An echo server and a client of it. */
async function pair(world: SimulatedWorld) {
  const [a, b] = [world.addHost('a'), world.addHost('b')]
  const [first, second] = [a.start(), b.start()]
  const received: string[] = []
  const closed: string[] = []
  await world.runUntilSettled(
    first.platform.network.listen({ port: 7 }, (connection) =>
      connection.setHandler({
        data: (chunk) => void connection.write(chunk.slice()),
        drain() {},
        closed() {},
      }),
    ),
    100,
  )
  const connection = await world.runUntilSettled(
    second.platform.network.connect({ host: 'a', port: 7 }),
    1000,
  )
  connection.setHandler({
    data: (chunk) => received.push(text(chunk)),
    drain() {},
    closed: (cause) => closed.push((cause as { code?: string } | undefined)?.code ?? 'closed'),
  })
  return { a, b, connection, received, closed }
}

describe('SimulatedWorld', () => {
  it('time jumps from event to event, and promises settle between two events', async ({ world }) => {
    const { clock } = world.addHost('a').start().platform
    const order: string[] = []
    clock.after(3_600_000, 'late', () => order.push('late'))
    clock.after(5, 'early', () => {
      order.push('early')
      void Promise.resolve()
        .then(() => Promise.resolve())
        .then(() => order.push('promise'))
      clock.immediate(() => order.push('soon'))
      clock.afterMicrotasks(() => order.push('after promises'))
    })
    await world.run(7_200_000)
    expect(order).toEqual(['early', 'promise', 'after promises', 'soon', 'late'])
    expect(world.now).toBe(7_200_000)
  })

  it('a drifting machine runs faster, and a jump affects its wall clock only', async ({ world, host }) => {
    const { clock } = host.start().platform
    const [wall, monotonic] = [clock.wall(), clock.monotonic()]
    setClockRate(host.clockSkew, world.now, 1.1)
    jumpWallClock(host.clockSkew, 60_000)
    await world.run(1000)
    expect(Math.round(clock.monotonic() - monotonic)).toBe(1100)
    expect(Math.round(clock.wall() - wall)).toBe(61_100)
  })

  it('a loop in which no time passes is reported', async ({ world }) => {
    const { clock } = world.addHost('a').start().platform
    const spin = (): void => clock.immediate(spin)
    spin()
    await expect(world.run(10)).rejects.toThrow('Expected time to pass')
  })
})

describe('Host', () => {
  it('a crashed process runs no more events, and a restart is a new incarnation', async ({ world, host }) => {
    const first = host.start()
    const done: string[] = []
    first.platform.clock.after(10, 'timer', () => done.push('timer'))
    void first.platform.disk.makeFolder('/x').then(() => done.push('disk'))
    host.crash('kill')
    const next = host.start()
    next.platform.clock.after(10, 'timer', () => done.push('next'))
    await world.run(100)
    expect(done).toEqual(['next'])
    expect(next.pid).not.toBe(first.pid)
  })

  it('a resumed process runs its deferred events in order', async ({ world, host }) => {
    const { clock } = host.start().platform
    const done: string[] = []
    clock.after(10, 'one', () => done.push(`one at ${Math.round(world.now)}`))
    clock.after(20, 'two', () => done.push(`two at ${Math.round(world.now)}`))
    host.pause()
    await world.run(1000)
    expect(done).toEqual([])
    host.resume()
    await world.run(2000)
    expect(done).toEqual(['one at 1000', 'two at 1000'])
  })

  it('a deferred timer does not run when an earlier deferred event cancels it', async ({ world, host }) => {
    const { clock } = host.start().platform
    const ran: string[] = []
    clock.after(10, 'first', () => {
      ran.push('first')
      cancel()
    })
    const cancel = clock.after(20, 'second', () => ran.push('second'))
    host.pause()
    await world.run(100)
    host.resume()
    await world.run(200)
    expect(ran).toEqual(['first'])
  })
})

describe('SimulatedNetwork', () => {
  it('a cut link stalls connections, which resume or break when it heals', async () => {
    const world = new SimulatedWorld(3)
    const { a, b, connection, received, closed } = await pair(world)
    connection.write(bytes('one'))
    await world.run(100)
    expect(received.join('')).toBe('one')
    world.network.cut(b, a)
    connection.write(bytes('two'))
    await world.run(10_000)
    expect([received.join(''), closed]).toEqual(['one', []])
    world.network.conditions.breakOnHealRate = 0
    world.network.healLink(a, b)
    await world.run(10_100)
    expect(received.join('')).toBe('onetwo')
    world.network.cut(b, a)
    connection.write(bytes('three'))
    world.network.conditions.breakOnHealRate = 1
    world.network.heal()
    await world.run(20_000)
    expect([received.join(''), closed]).toEqual(['onetwo', ['ETIMEDOUT']])
  })

  it('a killed process resets its connections, a power cut leaves them half-open', async ({ world }) => {
    const killed = await pair(world)
    killed.a.crash('kill')
    await world.run(world.now + 1000)
    expect(killed.closed).toEqual(['ECONNRESET'])
    const other = new SimulatedWorld(1)
    const dark = await pair(other)
    dark.a.crash('power')
    dark.connection.write(bytes('lost'))
    await other.run(other.now + 100_000)
    expect(dark.closed).toEqual([])
    dark.a.start()
    dark.connection.write(bytes('ping'))
    await other.run(other.now + 1000)
    expect(dark.closed).toEqual(['ECONNRESET'])
  })

  it('bytes stay in order when a chunk is delayed', async () => {
    const sent = Array.from({ length: 40 }, (_, index) => `${index},`)
    for (let seed = 1; seed <= 40; seed++) {
      const world = new SimulatedWorld(seed)
      Object.assign(world.network.conditions, { splitRate: 0.5, tailRate: 0.1, tailMs: 150 })
      const { connection, received } = await pair(world)
      for (const word of sent) {
        connection.write(bytes(word))
        await world.run(world.now + world.prng.between(0.1, 3))
      }
      await world.run(world.now + 60_000)
      expect(received.join(''), `seed ${seed}`).toBe(sent.join(''))
    }
  })

  it('a connection that breaks before it is established rejects', async ({ world }) => {
    const [a, b] = [world.addHost('a'), world.addHost('b')]
    const accepted: Connection[] = []
    const { network } = a.start().platform
    await world.runUntilSettled(
      network.listen({ port: 7 }, (connection) => void accepted.push(connection)),
      100,
    )
    const dialed = b.start().platform.network.connect({ host: 'a', port: 7 })
    const refused = expect(dialed).rejects.toThrow('ECONNRESET')
    await world.run(1000, () => world.network.reset(a, b) > 0)
    await world.run(1000)
    await refused
    expect(accepted).toEqual([])
  })

  it('a connect is refused at a closed port and pending at a machine without power until its signal aborts', async () => {
    const world = new SimulatedWorld(1)
    const { a, b } = await pair(world)
    const { network } = b.current!.platform
    await expect(world.runUntilSettled(network.connect({ host: 'a', port: 8 }), 1000)).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    })
    a.crash('power')
    const give = new AbortController()
    const dialed = network.connect({ host: 'a', port: 7 }, { signal: give.signal })
    b.current!.platform.clock.after(500, 'give up', () => give.abort())
    await expect(world.runUntilSettled(dialed, 1000)).rejects.toMatchObject({ code: 'ABORT_ERR' })
    await expect(
      world.runUntilSettled(network.connect({ host: 'a', port: 7 }), 200_000),
    ).rejects.toMatchObject({
      code: 'ETIMEDOUT',
    })
  })
})

describe('DiskImage', () => {
  it('a power cut keeps all durable data and loses some unsynced data', async () => {
    const outcomes = new Set<string>()
    for (let seed = 1; seed <= 60; seed++) {
      const world = new SimulatedWorld(seed)
      const host = world.addHost('a')
      host.disk.conditions.reordersSectors = true
      const { disk } = host.start().platform
      await world.runUntilSettled(disk.makeFolder('/d'), 1000)
      const writer = await world.runUntilSettled(
        disk.openWrite('/d/f', { create: true, durable: false }),
        1000,
      )
      await world.runUntilSettled(writer.write(new Uint8Array(2000).fill(1), 0), 1000)
      await world.runUntilSettled(writer.sync(), 1000)
      await world.runUntilSettled(disk.syncFolder('/d'), 1000)
      await world.runUntilSettled(writer.write(new Uint8Array(2000).fill(2), 2000), 1000)
      await world.runUntilSettled(disk.openWrite('/d/g', { create: true, durable: true }), 1000)
      host.crash('power')
      const again = host.start().platform.disk
      const found = await world.runUntilSettled(again.readFile('/d/f'), 1000)
      expect(
        [...found.subarray(0, 2000)].every((byte) => byte === 1),
        `seed ${seed}`,
      ).toBe(true)
      const whole = found.length === 4000 && [...found.subarray(2000)].every((byte) => byte === 2)
      outcomes.add(whole ? 'whole' : found.length === 2000 ? 'lost' : 'torn')
      outcomes.add((await world.runUntilSettled(again.exists('/d/g'), 1000)) ? 'name kept' : 'name lost')
    }
    expect([...outcomes].sort()).toEqual(['lost', 'name kept', 'name lost', 'torn', 'whole'])
  })

  it('a power cut loses unsynced data of a process that had already ended', async () => {
    const outcomes = new Set<number>()
    for (let seed = 1; seed <= 20; seed++) {
      const world = new SimulatedWorld(seed)
      const host = world.addHost('a')
      const { disk } = host.start().platform
      const writer = await world.runUntilSettled(disk.openWrite('/f', { create: true, durable: false }), 1000)
      await world.runUntilSettled(disk.syncFolder(''), 1000)
      await world.runUntilSettled(writer.write(bytes('x'), 0), 1000)
      host.crash('kill')
      host.crash('power')
      outcomes.add((await world.runUntilSettled(host.start().platform.disk.readFile('/f'), 1000)).length)
    }
    expect(outcomes).toEqual(new Set([0, 1]))
  })

  it('a power cut reorders and corrupts unsynced sectors, and reports the first affected byte', async () => {
    const met = new Set<string>()
    for (let seed = 1; seed <= 60; seed++) {
      const world = new SimulatedWorld(seed)
      const { disk: platter } = world.addHost('a')
      platter.conditions.reordersSectors = true
      const file = platter.create('/f')
      platter.syncFolder('')
      file.write(0, new Uint8Array(600).fill(1))
      file.sync(file.pending)
      // Expects the first bytes unchanged: the connection must copy what is written.
      file.write(
        0,
        Uint8Array.from({ length: 3000 }, (_, at) => (at < 600 ? 1 : 2)),
      )
      platter.crash('power')
      expect([...file.bytes.subarray(0, 600)].every((byte) => byte === 1)).toBe(true)
      expect(file.firstUnsyncedByte).toBe(600)
      for (const [name, count] of Object.entries(platter.faultCounts)) if (count > 0) met.add(name)
    }
    expect([...met].sort()).toEqual([
      'lost tails',
      'reordered tails',
      'tails with flipped bytes',
      'torn tails',
    ])
  })

  it('a failed sync drops its pending writes for good', async () => {
    const world = new SimulatedWorld(5)
    const host = world.addHost('a')
    const { disk } = host.start().platform
    const writer = await world.runUntilSettled(disk.openWrite('/f', { create: true, durable: true }), 1000)
    await world.runUntilSettled(disk.syncFolder(''), 1000)
    host.disk.conditions.failNextSync = true
    await expect(world.runUntilSettled(writer.write(bytes('x'), 0), 1000)).rejects.toMatchObject({
      code: 'EIO',
    })
    expect(text(await world.runUntilSettled(disk.readFile('/f'), 1000))).toBe('x')
    host.crash('power')
    expect((await world.runUntilSettled(host.start().platform.disk.readFile('/f'), 1000)).length).toBe(0)
  })

  it('a full disk refuses writes that grow a file', async () => {
    const world = new SimulatedWorld(5)
    const host = world.addHost('a')
    const { disk } = host.start().platform
    const writer = await world.runUntilSettled(disk.openWrite('/f', { create: true, durable: true }), 1000)
    host.disk.conditions.isFull = true
    await expect(world.runUntilSettled(writer.write(bytes('x'), 0), 1000)).rejects.toMatchObject({
      code: 'ENOSPC',
    })
    host.disk.conditions.isFull = false
    await world.runUntilSettled(writer.write(bytes('x'), 0), 1000)
  })

  it('the syncs of a slow disk take at most four times their average', async () => {
    const world = new SimulatedWorld(5)
    const host = world.addHost('a')
    const { disk } = host.start().platform
    host.disk.conditions.syncMs = 1000
    host.disk.conditions.stallRate = 0
    const times: number[] = []
    for (let sync = 0; sync < 300; sync++) {
      const begun = world.now
      await world.runUntilSettled(disk.syncFolder(''), 100_000)
      times.push(world.now - begun)
    }
    expect(Math.max(...times)).toBeCloseTo(4000)
  })
})
