import { describe, expect, it } from 'vitest'
import { addressOf, bytes, frame, helloOf, hex, ElectionFixture, text } from './testing/election-fixture.ts'

const settled = async (rig: ElectionFixture): Promise<void> => rig.clock.untilIdle()

describe('two servers', () => {
  it.each([
    ['the larger', 3, 1],
    ['the smaller', 1, 3],
  ])('have one connection, opened by the larger id, when %s one speaks first', async (_, first, second) => {
    const rig = new ElectionFixture()
    const servers = new Map([
      [1, await rig.startedConnections(1)],
      [3, await rig.startedConnections(3)],
    ])
    servers.get(first)!.send(second, text('hello'))
    await settled(rig)
    expect(rig.received).toEqual([`${second} from ${first}: hello`])
    servers.get(second)!.send(first, text('you too'))
    await settled(rig)
    expect(rig.received.at(-1)).toBe(`${first} from ${second}: you too`)
    expect([servers.get(1)!.connected, servers.get(3)!.connected]).toEqual([[3], [1]])
    expect(rig.timers).not.toContain('election connection to 3')
  })

  it('come to one connection when both begin at once', async () => {
    const rig = new ElectionFixture()
    const [one, three] = [await rig.startedConnections(1), await rig.startedConnections(3)]
    one.send(3, text('a'))
    three.send(1, text('b'))
    await settled(rig)
    await rig.advance(1000)
    expect([one.connected, three.connected]).toEqual([[3], [1]])
    expect(new Set(rig.received)).toEqual(new Set(['3 from 1: a', '1 from 3: b']))
  })
})

describe('the smaller of two', () => {
  it('rings: it says who it is in the bytes of Apache ZooKeeper, and hangs up', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(3)
    const one = await rig.startedConnections(1)
    one.connect(3)
    await settled(rig)
    expect(accepted.map(({ received }) => received)).toEqual([
      'ffffffffffff00000000000000000001' + '0000000f' + '3132372e302e302e313a3233333031',
    ])
    expect(accepted[0]!.closed).toBe(true)
    expect(one.connected).toEqual([])
  })

  it('keeps the connection with which the larger one calls back', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const three = await rig.dial(1, helloOf(3), frame('vote 3'))
    expect(rig.received).toEqual(['1 from 3: vote 3'])
    one.send(3, text('vote 1'))
    await settled(rig)
    expect(three.received).toBe(hex(frame('vote 1')))
  })

  it('rings again when nobody calls back', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(3)
    const one = await rig.startedConnections(1)
    one.connect(3)
    await settled(rig)
    await rig.advance(100)
    expect(accepted.length).toBe(2)
    await rig.dial(1, helloOf(3))
    await rig.advance(60_000)
    expect(accepted.length).toBe(2)
  })

  it('takes a new connection of the larger one in place of the old', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const old = await rig.dial(1, helloOf(3))
    const fresh = await rig.dial(1, helloOf(3))
    expect([old.closed, fresh.closed]).toEqual([true, false])
    one.send(3, text('x'))
    await settled(rig)
    expect([old.received, fresh.received]).toEqual(['', hex(frame('x'))])
  })
})

describe('the larger of two', () => {
  it('drops what it had and calls back when the smaller one rings', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(1)
    const three = await rig.startedConnections(3)
    three.send(1, text('vote 3'))
    await settled(rig)
    const bell = await rig.dial(3, helloOf(1))
    expect([bell.closed, bell.received]).toEqual([true, ''])
    expect(accepted.map(({ closed }) => closed)).toEqual([true, false])
    expect(accepted[1]!.received).toBe(hex(helloOf(3)) + hex(frame('vote 3')))
  })

  it('calls back at the address that a joiner said, since it knows no other', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(7)
    const nine = await rig.startedConnections(9, { acceptsUnknownServers: true })
    await rig.dial(9, helloOf(7))
    expect(accepted[0]!.received).toBe(hex(helloOf(9)))
    expect(nine.connected).toEqual([7])
  })

  it('tries all addresses of a member, its own words last', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(8)
    const three = await rig.startedConnections(3, {
      addressesOf: (id) => (id === 1 ? [addressOf(6), addressOf(7)] : []),
    })
    await rig.dial(3, bytes('ffffffffffff0000 0000000000000001 0000000f', hex(text('127.0.0.1:23308'))))
    expect(accepted.length).toBe(1)
    expect(three.connected).toEqual([1])
  })
})

describe('a hello', () => {
  it('announces several addresses in the second version', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(1)
    const announce = () => [
      { host: '127.0.0.1', port: 23_312 },
      { host: '127.0.0.1', port: 23_302 },
    ]
    const two = await rig.startedConnections(2, { multiAddress: true, announcedAddresses: announce })
    two.connect(1)
    await settled(rig)
    expect(accepted[0]!.received).toBe(
      'ffffffffffff000100000000000000020000001f' +
        '3132372e302e302e313a32333331327c3132372e302e302e313a3233333032',
    )
  })

  it('may come in single bytes', async () => {
    const rig = new ElectionFixture()
    rig.network.chunkBytes = 1
    await rig.startedConnections(1)
    await rig.dial(1, helloOf(3), frame('vote'))
    expect(rig.received).toEqual(['1 from 3: vote'])
  })

  it('of the second version is understood', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const said = text('127.0.0.1:23303|[::1]:23303')
    await rig.dial(1, bytes('ffffffffffff0001 0000000000000003 0000001b', hex(said)))
    expect(one.connected).toEqual([3])
  })

  it('of before 3.5 is an id and nothing else', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    await rig.dial(1, bytes('0000000000000003'), frame('vote'))
    expect([one.connected, rig.received]).toEqual([[3], ['1 from 3: vote']])
  })

  it('may say that its server listens everywhere, which says nothing', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    await rig.dial(1, bytes('ffffffffffff0000 0000000000000003 0000000c', hex(text('0.0.0.0:1234'))))
    expect(one.connected).toEqual([3])
  })

  it.each([
    ['is of no known protocol', 'fffffffffffeffff', 'Expected the protocol -65536 or -65535, got -65537'],
    ['has no address', 'ffffffffffff0000 0000000000000003 00000000', 'got a length of 0'],
    [
      'has an address of more than 2048 bytes',
      'ffffffffffff0000 0000000000000003 00000801',
      'got a length of 2049',
    ],
    [
      'has an address without port',
      'ffffffffffff0000 0000000000000003 00000001 61',
      'Expected host:port, got \\"a\\"',
    ],
    [
      'has a negative id',
      'ffffffffffff0000 fffffffffffffffe 00000001 61',
      'Expected the id of a server, got -2',
    ],
    ['is anonymous', 'ffffffffffff0000 7fffffffffffffff 00000001 61', 'an observer without an id'],
    ['is a request of the web', hex(text('GET / HTTP/1.1')), 'Expected the id of a server'],
    ['is of a stranger', hex(helloOf(9)), 'server 9 is not in the configuration'],
    ['is my own', hex(helloOf(1)), 'which is this one. Two servers may have the same myid'],
  ])('that %s ends the connection with a line in the log', async (_, first, why) => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const raw = await rig.dial(1, bytes(first))
    expect([raw.closed, one.connected]).toEqual([true, []])
    expect(rig.logged.length).toBe(1)
    expect(rig.logged[0]).toContain(why)
    expect(rig.timers).toEqual([])
  })

  it('must come in time', async () => {
    const rig = new ElectionFixture()
    await rig.startedConnections(1)
    const raw = await rig.dial(1, bytes('ffffffffffff0000'))
    await rig.advance(4999)
    expect(raw.closed).toBe(false)
    await rig.advance(1)
    expect(raw.closed).toBe(true)
    expect(rig.logged[0]).toContain('it did not identify itself within 5000 ms (8 bytes came)')
  })

  it('is waited for on so many connections only, and a flood is logged in two lines', async () => {
    const rig = new ElectionFixture()
    await rig.startedConnections(1, { maxUnidentified: 3 })
    const raws = []
    for (let i = 0; i < 10; i++) raws.push(await rig.dial(1))
    expect(raws.map(({ closed }) => closed)).toEqual([
      ...new Array<boolean>(7).fill(true),
      false,
      false,
      false,
    ])
    // A member comes in all the same.
    await rig.dial(1, helloOf(2), frame('hello'))
    expect(rig.received).toEqual(['1 from 2: hello'])
    for (const raw of raws) raw.wire.destroy()
    await settled(rig)
    const told = rig.logged.filter((line) => !line.includes('for elections'))
    expect(told.map((line) => line.replace(/\{.*/, ''))).toEqual([
      'warn Too many connections to the election port have not identified themselves; the oldest are closed for now ',
      'info Connections to the election port identify themselves again ',
    ])
    await rig.dial(1, helloOf(3), frame('vote'))
    expect(rig.received).toEqual(['1 from 2: hello', '1 from 3: vote'])
  })

  it('that cannot be read is told of once in ten seconds, however many come', async () => {
    const rig = new ElectionFixture()
    await rig.startedConnections(1)
    for (let i = 0; i < 50; i++) await rig.dial(1, bytes('ffffffffffffffff'))
    for (let i = 0; i < 50; i++) await rig.dial(1, helloOf(99))
    expect(rig.logged.length).toBe(1)
    await rig.advance(10_000)
    await rig.dial(1, helloOf(99))
    expect(rig.logged.length).toBe(2)
    expect(rig.logged[1]).toContain('"others":99')
  })

  it('of strangers is accepted where they may come, but not of any number', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1, { acceptsUnknownServers: true, maxUnknownServers: 2 })
    const raws = []
    for (const id of [7, 8, 9]) raws.push(await rig.dial(1, helloOf(id)))
    expect(one.connected).toEqual([7, 8])
    expect(rig.logged.at(-1)).toContain('2 servers outside of the configuration are connected already')
    raws[0]!.wire.destroy()
    await settled(rig)
    await rig.dial(1, helloOf(9))
    expect(one.connected).toEqual([8, 9])
  })
})

describe('messages', () => {
  it('that are not sent yet give way to the newest', async () => {
    const rig = new ElectionFixture()
    const three = await rig.startedConnections(3)
    for (const word of ['a', 'b', 'c']) three.send(1, text(word))
    await settled(rig)
    await rig.startedConnections(1)
    await rig.advance(100)
    expect(rig.received).toEqual(['1 from 3: c'])
  })

  it('give way to the newest while the other side does not read', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const three = await rig.dial(1, helloOf(3))
    three.wire.pause()
    one.send(3, new Uint8Array(70_000))
    for (const word of ['old', 'new']) one.send(3, text(word))
    await settled(rig)
    three.wire.resume()
    await settled(rig)
    expect(three.received.slice(8 + 140_000)).toBe(hex(frame('new')))
  })

  it('begin with the last one on a new connection', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const first = await rig.dial(1, helloOf(3))
    one.send(3, text('vote'))
    await settled(rig)
    first.wire.destroy()
    await settled(rig)
    const second = await rig.dial(1, helloOf(3))
    expect(second.received).toBe(hex(frame('vote')))
  })

  it.each([
    ['nothing', '00000000'],
    ['more than 512 KiB', '00080001'],
    ['less than nothing', 'ffffffff'],
  ])('of %s end the connection with a line in the log', async (_, length) => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const three = await rig.dial(1, helloOf(3), frame('vote'), bytes(length))
    expect([three.closed, one.connected, rig.received]).toEqual([true, [], ['1 from 3: vote']])
    expect(rig.logged.at(-1)).toContain('Expected a frame of 1 to 524288 bytes')
  })
})

describe('a member that cannot be reached', () => {
  it('is tried again after pauses that grow, and named once in the log', async () => {
    const rig = new ElectionFixture()
    const three = await rig.startedConnections(3)
    three.send(1, text('vote'))
    await settled(rig)
    const pauses: number[] = []
    for (let i = 0; i < 8; i++) {
      const next = rig.clock.pendingTimers()[0]!
      expect(next.name).toBe('election connection to 1')
      pauses.push(next.at - rig.clock.monotonic())
      await rig.advance(pauses.at(-1)!)
    }
    expect(pauses).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000])
    expect(rig.logged.filter((line) => line.includes('cannot be reached')).length).toBe(1)
  })

  it('is reached when it is back', async () => {
    const rig = new ElectionFixture()
    const three = await rig.startedConnections(3)
    three.send(1, text('vote'))
    await rig.advance(300)
    await rig.startedConnections(1)
    await rig.advance(5000)
    expect(rig.received).toEqual(['1 from 3: vote'])
  })

  it('is told of as out of reach once it hangs up, until it is connected again', async () => {
    const rig = new ElectionFixture()
    const reached: string[] = []
    const three = await rig.startedConnections(3, {
      reachabilityChanged: (to, reachable) =>
        reached.push(`${to} ${reachable ? 'is there' : 'is out of reach'}`),
    })
    three.send(1, text('hello'))
    await settled(rig)
    expect(reached).toEqual([])
    for (const _ of ['first', 'second']) {
      const one = await rig.startedConnections(1)
      await rig.advance(1000)
      await one.close()
      await settled(rig)
    }
    expect(reached).toEqual(['1 is there', '1 is out of reach', '1 is there', '1 is out of reach'])
  })

  it('is called again after a connection is lost, soon if that one was of use', async () => {
    const rig = new ElectionFixture()
    const { accepted } = await rig.listenAs(1)
    const three = await rig.startedConnections(3)
    three.connect(1)
    await settled(rig)
    for (const pause of [100, 200]) {
      accepted.at(-1)!.wire.destroy()
      await settled(rig)
      expect(rig.clock.pendingTimers()[0]!.at - rig.clock.monotonic()).toBe(pause)
      await rig.advance(pause)
    }
    accepted.at(-1)!.wire.write(frame('vote'))
    await settled(rig)
    accepted.at(-1)!.wire.destroy()
    await settled(rig)
    expect(rig.clock.pendingTimers()[0]!.at - rig.clock.monotonic()).toBe(100)
  })

  it('does not keep anybody waiting who connects meanwhile', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    one.send(3, text('vote 1'))
    await rig.advance(4000)
    const three = await rig.dial(1, helloOf(3))
    expect(three.received).toBe(hex(frame('vote 1')))
    expect(rig.timers).toEqual([])
  })

  it('is not missed in the log when it has connected while it was called', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    one.connect(3)
    await rig.dial(1, helloOf(3))
    expect(rig.logged.filter((line) => line.includes('cannot be reached'))).toEqual([])
    expect(rig.timers).toEqual([])
  })

  it('is given up when it is no member any more', async () => {
    const rig = new ElectionFixture()
    const members = new Set([1, 2, 3])
    const three = await rig.startedConnections(3, {
      addressesOf: (id) => (members.has(id) ? [addressOf(id)] : []),
    })
    const { accepted } = await rig.listenAs(2)
    for (const id of [1, 2]) three.connect(id)
    await settled(rig)
    expect(three.connected).toEqual([2])
    members.delete(1)
    members.delete(2)
    three.membersChanged()
    await settled(rig)
    expect([three.connected, accepted[0]!.closed, rig.timers]).toEqual([[], true, []])
  })
})

describe('the election port', () => {
  it('is tried again for a while when another program has it', async () => {
    const rig = new ElectionFixture()
    const { close } = await rig.listenAs(1)
    const one = rig.connections(1)
    const started = one.start()
    await settled(rig)
    await close()
    await rig.advance(1000)
    await started
    expect(one.addresses).toEqual([addressOf(1)])
  })

  it('is given up after three attempts, and then no other port is kept', async () => {
    const rig = new ElectionFixture()
    await rig.listenAs(1)
    const one = rig.connections(1, { listenAddresses: () => [addressOf(6), addressOf(1)] })
    const failed = expect(one.start()).rejects.toMatchObject({ name: 'NetworkError', code: 'EADDRINUSE' })
    for (let i = 0; i < 3; i++) await rig.advance(1000)
    await failed
    await rig.listenAs(6)
    expect(rig.logged.length).toBe(2)
  })

  it('moves with the configuration, and stays where it is while the new one cannot be had', async () => {
    const rig = new ElectionFixture()
    let place = addressOf(1)
    const one = await rig.startedConnections(1, { listenAddresses: () => [place], bindAttempts: 1 })
    const known = await rig.dial(1, helloOf(3))
    const other = await rig.listenAs(6)
    place = addressOf(6)
    one.membersChanged()
    await settled(rig)
    expect(one.addresses).toEqual([addressOf(1)])
    expect(rig.logged.join()).toContain('cannot be moved')
    await other.close()
    one.membersChanged()
    await settled(rig)
    expect(one.addresses).toEqual([addressOf(6)])
    // Connections that stand stay.
    expect(known.closed).toBe(false)
    await rig.listenAs(1)
  })

  it('is free after closing, and nothing goes on', async () => {
    const rig = new ElectionFixture()
    const one = await rig.startedConnections(1)
    const [known, unknown] = [await rig.dial(1, helloOf(3)), await rig.dial(1)]
    one.connect(2)
    await settled(rig)
    await one.close()
    await settled(rig)
    expect([known.closed, unknown.closed, rig.timers]).toEqual([true, true, []])
    one.send(2, text('nothing'))
    expect(rig.timers).toEqual([])
    await rig.listenAs(1)
  })
})
