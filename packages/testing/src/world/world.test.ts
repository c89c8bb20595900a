import type { Connection } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { jumpWallClock, setClockRate } from './clock.ts'
import type { Host } from './process.ts'
import { SimulatedWorld } from './world.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const text = (data: Uint8Array): string => new TextDecoder().decode(data)

/** An echo server and a client of it. */
async function pair(
  world: SimulatedWorld,
): Promise<{ a: Host; b: Host; wire: Connection; heard: string[]; closed: string[] }> {
  const [a, b] = [world.addHost('a'), world.addHost('b')]
  const [first, second] = [a.start(), b.start()]
  const heard: string[] = []
  const closed: string[] = []
  await world.runUntilSettled(
    first.ports.network.listen({ port: 7 }, (wire) =>
      wire.setHandler({ data: (chunk) => void wire.write(chunk.slice()), drain() {}, closed() {} }),
    ),
    100,
  )
  const wire = await world.runUntilSettled(second.ports.network.connect({ host: 'a', port: 7 }), 1000)
  wire.setHandler({
    data: (chunk) => heard.push(text(chunk)),
    drain() {},
    closed: (cause) => closed.push((cause as { code?: string } | undefined)?.code ?? 'closed'),
  })
  return { a, b, wire, heard, closed }
}

describe('the time of a world', () => {
  it('jumps from event to event, and lets promises come to rest between two', async () => {
    const world = new SimulatedWorld(1)
    const { clock } = world.addHost('a').start().ports
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

  it('goes faster on a machine that drifts, and jumps on its wall clock alone', async () => {
    const world = new SimulatedWorld(1)
    const host = world.addHost('a')
    const { clock } = host.start().ports
    const [wall, monotonic] = [clock.wall(), clock.monotonic()]
    setClockRate(host.clockSkew, world.now, 1.1)
    jumpWallClock(host.clockSkew, 60_000)
    await world.run(1000)
    expect(Math.round(clock.monotonic() - monotonic)).toBe(1100)
    expect(Math.round(clock.wall() - wall)).toBe(61_100)
  })

  it('stops a process that never waits', async () => {
    const world = new SimulatedWorld(1)
    const { clock } = world.addHost('a').start().ports
    const spin = (): void => clock.immediate(spin)
    spin()
    await expect(world.run(10)).rejects.toThrow('Expected time to pass')
  })
})

describe('a process of a world', () => {
  it('does nothing any more once it has crashed, and is a new one after that', async () => {
    const world = new SimulatedWorld(1)
    const host = world.addHost('a')
    const life = host.start()
    const done: string[] = []
    life.ports.clock.after(10, 'timer', () => done.push('timer'))
    void life.ports.disk.makeFolder('/x').then(() => done.push('disk'))
    host.crash('kill')
    const next = host.start()
    next.ports.clock.after(10, 'timer', () => done.push('next'))
    await world.run(100)
    expect(done).toEqual(['next'])
    expect(next.pid).not.toBe(life.pid)
  })

  it('hears everything late that came while it stood still, in order', async () => {
    const world = new SimulatedWorld(1)
    const host = world.addHost('a')
    const { clock } = host.start().ports
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

  it('does not run a timer that was held by a pause and is cancelled by what comes before it', async () => {
    const world = new SimulatedWorld(1)
    const host = world.addHost('a')
    const { clock } = host.start().ports
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

describe('the network of a world', () => {
  it('holds bytes back while a way is cut, and lets them or the connection go when it is whole', async () => {
    const world = new SimulatedWorld(3)
    const { a, b, wire, heard, closed } = await pair(world)
    wire.write(bytes('one'))
    await world.run(100)
    expect(heard.join('')).toBe('one')
    world.network.cut(b, a)
    wire.write(bytes('two'))
    await world.run(10_000)
    expect([heard.join(''), closed]).toEqual(['one', []])
    world.network.conditions.breakOnHealRate = 0
    world.network.healLink(a, b)
    await world.run(10_100)
    expect(heard.join('')).toBe('onetwo')
    world.network.cut(b, a)
    wire.write(bytes('three'))
    world.network.conditions.breakOnHealRate = 1
    world.network.heal()
    await world.run(20_000)
    expect([heard.join(''), closed]).toEqual(['onetwo', ['ETIMEDOUT']])
  })

  it('tells the peer of a process that is killed, and leaves the peer of a machine without power in its belief', async () => {
    const world = new SimulatedWorld(1)
    const killed = await pair(world)
    killed.a.crash('kill')
    await world.run(world.now + 1000)
    expect(killed.closed).toEqual(['ECONNRESET'])
    const other = new SimulatedWorld(1)
    const dark = await pair(other)
    dark.a.crash('power')
    dark.wire.write(bytes('lost'))
    await other.run(other.now + 100_000)
    expect(dark.closed).toEqual([])
    dark.a.start()
    dark.wire.write(bytes('who are you'))
    await other.run(other.now + 1000)
    expect(dark.closed).toEqual(['ECONNRESET'])
  })

  it('keeps the order of bytes when one chunk holds many up', async () => {
    const sent = Array.from({ length: 40 }, (_, index) => `${index},`)
    for (let seed = 1; seed <= 40; seed++) {
      const world = new SimulatedWorld(seed)
      Object.assign(world.network.conditions, { splitRate: 0.5, tailRate: 0.1, tailMs: 150 })
      const { wire, heard } = await pair(world)
      for (const word of sent) {
        wire.write(bytes(word))
        await world.run(world.now + world.prng.between(0.1, 3))
      }
      await world.run(world.now + 60_000)
      expect(heard.join(''), `seed ${seed}`).toBe(sent.join(''))
    }
  })

  it('fails a connection that breaks before whoever dials has it', async () => {
    const world = new SimulatedWorld(1)
    const [a, b] = [world.addHost('a'), world.addHost('b')]
    const accepted: Connection[] = []
    const { network } = a.start().ports
    await world.runUntilSettled(
      network.listen({ port: 7 }, (wire) => void accepted.push(wire)),
      100,
    )
    const dialed = b.start().ports.network.connect({ host: 'a', port: 7 })
    const refused = expect(dialed).rejects.toThrow('ECONNRESET')
    await world.run(1000, () => world.network.reset(a, b) > 0)
    await world.run(1000)
    await refused
    expect(accepted).toEqual([])
  })

  it('refuses where nobody listens, and lets who dials a dark machine wait until he gives up', async () => {
    const world = new SimulatedWorld(1)
    const { a, b } = await pair(world)
    const { network } = b.current!.ports
    await expect(world.runUntilSettled(network.connect({ host: 'a', port: 8 }), 1000)).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    })
    a.crash('power')
    const give = new AbortController()
    const dialed = network.connect({ host: 'a', port: 7 }, { signal: give.signal })
    b.current!.ports.clock.after(500, 'give up', () => give.abort())
    await expect(world.runUntilSettled(dialed, 1000)).rejects.toMatchObject({ code: 'ABORT_ERR' })
    await expect(
      world.runUntilSettled(network.connect({ host: 'a', port: 7 }), 200_000),
    ).rejects.toMatchObject({
      code: 'ETIMEDOUT',
    })
  })
})

describe('the disk of a machine', () => {
  it('keeps what was promised durable through every power cut, and loses other things', async () => {
    const outcomes = new Set<string>()
    for (let seed = 1; seed <= 60; seed++) {
      const world = new SimulatedWorld(seed)
      const host = world.addHost('a')
      host.disk.conditions.reordersSectors = true
      const { disk } = host.start().ports
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
      const again = host.start().ports.disk
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

  it('loses what a process that has ended before did not sync, when its machine loses power afterwards', async () => {
    const outcomes = new Set<number>()
    for (let seed = 1; seed <= 20; seed++) {
      const world = new SimulatedWorld(seed)
      const host = world.addHost('a')
      const { disk } = host.start().ports
      const writer = await world.runUntilSettled(disk.openWrite('/f', { create: true, durable: false }), 1000)
      await world.runUntilSettled(disk.syncFolder(''), 1000)
      await world.runUntilSettled(writer.write(bytes('x'), 0), 1000)
      host.crash('kill')
      host.crash('power')
      outcomes.add((await world.runUntilSettled(host.start().ports.disk.readFile('/f'), 1000)).length)
    }
    expect(outcomes).toEqual(new Set([0, 1]))
  })

  it('spoils what was not synced, keeps sectors of it in no order, and tells from where on', async () => {
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

  it('fails a sync once, and never keeps then what it had to write', async () => {
    const world = new SimulatedWorld(5)
    const host = world.addHost('a')
    const { disk } = host.start().ports
    const writer = await world.runUntilSettled(disk.openWrite('/f', { create: true, durable: true }), 1000)
    await world.runUntilSettled(disk.syncFolder(''), 1000)
    host.disk.conditions.failNextSync = true
    await expect(world.runUntilSettled(writer.write(bytes('x'), 0), 1000)).rejects.toMatchObject({
      code: 'EIO',
    })
    expect(text(await world.runUntilSettled(disk.readFile('/f'), 1000))).toBe('x')
    host.crash('power')
    expect((await world.runUntilSettled(host.start().ports.disk.readFile('/f'), 1000)).length).toBe(0)
  })

  it('has no space for what grows while it is full', async () => {
    const world = new SimulatedWorld(5)
    const host = world.addHost('a')
    const { disk } = host.start().ports
    const writer = await world.runUntilSettled(disk.openWrite('/f', { create: true, durable: true }), 1000)
    host.disk.conditions.isFull = true
    await expect(world.runUntilSettled(writer.write(bytes('x'), 0), 1000)).rejects.toMatchObject({
      code: 'ENOSPC',
    })
    host.disk.conditions.isFull = false
    await world.runUntilSettled(writer.write(bytes('x'), 0), 1000)
  })
})
