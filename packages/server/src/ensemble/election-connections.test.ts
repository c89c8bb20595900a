import { NetworkError, type Network } from '@zabra/runtime'
import { describe, expect } from 'vitest'
import {
  addressOf,
  bytes,
  frame,
  helloOf,
  hex,
  ElectionFixture,
  text,
  it,
} from './testing/election-fixture.ts'

describe('two servers', () => {
  it.each([
    ['the larger', 3, 1],
    ['the smaller', 1, 3],
  ])(
    'have one connection, opened by the larger id, when the %s one sends first',
    async (_, first, second) => {
      const fixture = new ElectionFixture()
      const servers = new Map([
        [1, await fixture.startedConnections(1)],
        [3, await fixture.startedConnections(3)],
      ])
      servers.get(first)!.send(second, text('hello'))
      await fixture.clock.untilIdle()
      expect(fixture.received).toEqual([`${second} from ${first}: hello`])
      servers.get(second)!.send(first, text('you too'))
      await fixture.clock.untilIdle()
      expect(fixture.received.at(-1)).toBe(`${first} from ${second}: you too`)
      expect([servers.get(1)!.connected, servers.get(3)!.connected]).toEqual([[3], [1]])
      expect(fixture.timers).not.toContain('election connection to 3')
    },
  )

  it('end with one connection when both connect at once', async ({ fixture }) => {
    const [one, three] = [await fixture.startedConnections(1), await fixture.startedConnections(3)]
    one.send(3, text('a'))
    await fixture.send(three, 1, 'b')
    await fixture.advance(1000)
    expect([one.connected, three.connected]).toEqual([[3], [1]])
    expect(new Set(fixture.received)).toEqual(new Set(['3 from 1: a', '1 from 3: b']))
  })
})

describe('the server with the smaller id', () => {
  it('sends the hello of Apache ZooKeeper and closes the connection', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(3)
    const one = await fixture.startedConnections(1)
    one.connect(3)
    await fixture.clock.untilIdle()
    expect(accepted.map(({ received }) => received)).toEqual([
      'ffffffffffff00000000000000000001' + '0000000f' + '3132372e302e302e313a3233333031',
    ])
    expect(accepted[0]!.closed).toBe(true)
    expect(one.connected).toEqual([])
  })

  it('keeps the connection that the larger one opens', async ({ fixture, one }) => {
    const three = await fixture.dial(1, helloOf(3), frame('vote 3'))
    expect(fixture.received).toEqual(['1 from 3: vote 3'])
    await fixture.send(one, 3, 'vote 1')
    expect(three.received).toBe(hex(frame('vote 1')))
  })

  it('sends its hello again when the larger one does not connect', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(3)
    const one = await fixture.startedConnections(1)
    one.connect(3)
    await fixture.clock.untilIdle()
    await fixture.advance(100)
    expect(accepted.length).toBe(2)
    await fixture.dial(1, helloOf(3))
    await fixture.advance(60_000)
    expect(accepted.length).toBe(2)
  })

  it('replaces its connection by a new one of the larger server', async ({ fixture, one }) => {
    const old = await fixture.dial(1, helloOf(3))
    const fresh = await fixture.dial(1, helloOf(3))
    expect([old.closed, fresh.closed]).toEqual([true, false])
    await fixture.send(one, 3, 'x')
    expect([old.received, fresh.received]).toEqual(['', hex(frame('x'))])
  })
})

describe('the server with the larger id', () => {
  it('drops its connection and connects when the smaller one sends a hello', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(1)
    const three = await fixture.startedConnections(3)
    await fixture.send(three, 1, 'vote 3')
    await fixture.advance(1000)
    const smaller = await fixture.dial(3, helloOf(1))
    expect([smaller.closed, smaller.received]).toEqual([true, ''])
    expect(accepted.map(({ closed }) => closed)).toEqual([true, false])
    expect(accepted[1]!.received).toBe(hex(helloOf(3)) + hex(frame('vote 3')))
  })

  it('keeps a connection younger than a second when the smaller one sends hellos', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(1)
    const three = await fixture.startedConnections(3)
    await fixture.send(three, 1, 'vote 3')
    for (let i = 0; i < 20; i++) expect((await fixture.dial(3, helloOf(1))).closed).toBe(true)
    expect(accepted.map(({ closed }) => closed)).toEqual([false])
  })

  it('connects to a joining server at the address in its hello', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(7)
    const nine = await fixture.startedConnections(9, { acceptsUnknownServers: true })
    await fixture.dial(9, helloOf(7))
    expect(accepted[0]!.received).toBe(hex(helloOf(9)))
    expect(nine.connected).toEqual([7])
  })

  it('tries the configured addresses of a member before those of its hello', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(8)
    const three = await fixture.startedConnections(3, {
      addressesOf: (id) => (id === 1 ? [addressOf(6), addressOf(7)] : []),
    })
    await fixture.dial(3, bytes('ffffffffffff0000 0000000000000001 0000000f', hex(text('127.0.0.1:23308'))))
    expect(accepted.length).toBe(1)
    expect(three.connected).toEqual([1])
  })
})

describe('a hello', () => {
  it('announces several addresses in the second version', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(1)
    const announcedAddresses = () => [
      { host: '127.0.0.1', port: 23_312 },
      { host: '127.0.0.1', port: 23_302 },
    ]
    const two = await fixture.startedConnections(2, { multiAddress: true, announcedAddresses })
    two.connect(1)
    await fixture.clock.untilIdle()
    expect(accepted[0]!.received).toBe(
      'ffffffffffff000100000000000000020000001f' +
        '3132372e302e302e313a32333331327c3132372e302e302e313a3233333032',
    )
  })

  it('may come in single bytes', async ({ fixture }) => {
    fixture.network.chunkBytes = 1
    await fixture.startedConnections(1)
    await fixture.dial(1, helloOf(3), frame('vote'))
    expect(fixture.received).toEqual(['1 from 3: vote'])
  })

  it('of the second version is understood', async ({ fixture, one }) => {
    const announced = text('127.0.0.1:23303|[::1]:23303')
    await fixture.dial(1, bytes('ffffffffffff0001 0000000000000003 0000001b', hex(announced)))
    expect(one.connected).toEqual([3])
  })

  it('of a server before 3.5 is an id alone', async ({ fixture, one }) => {
    await fixture.dial(1, bytes('0000000000000003'), frame('vote'))
    expect([one.connected, fixture.received]).toEqual([[3], ['1 from 3: vote']])
  })

  it('may announce a wildcard address, which is ignored', async ({ fixture, one }) => {
    await fixture.dial(1, bytes('ffffffffffff0000 0000000000000003 0000000c', hex(text('0.0.0.0:1234'))))
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
    ['is an HTTP request', hex(text('GET / HTTP/1.1')), 'its first bytes are HTTP'],
    ['is of an unknown server', hex(helloOf(9)), 'server 9 is not in the configuration'],
    [
      'has the id of the server itself',
      hex(helloOf(1)),
      'which is this one. Two servers may have the same myid',
    ],
  ])('that %s ends the connection with a line in the log', async (_, first, why) => {
    const fixture = new ElectionFixture()
    const one = await fixture.startedConnections(1)
    const raw = await fixture.dial(1, bytes(first))
    expect([raw.closed, one.connected]).toEqual([true, []])
    expect(fixture.logged.length).toBe(1)
    expect(fixture.logged[0]).toContain(why)
    expect(fixture.timers).toEqual([])
  })

  it('must come in time', async ({ fixture }) => {
    await fixture.startedConnections(1)
    const raw = await fixture.dial(1, bytes('ffffffffffff0000'))
    await fixture.advance(4999)
    expect(raw.closed).toBe(false)
    await fixture.advance(1)
    expect(raw.closed).toBe(true)
    expect(fixture.logged[0]).toContain('it did not identify itself within 5000 ms (8 bytes came)')
  })

  it('is awaited on a bounded number of connections, and a flood of them is logged in two lines', async () => {
    const fixture = new ElectionFixture()
    await fixture.startedConnections(1, { maxUnidentified: 3 })
    const raws = []
    for (let i = 0; i < 10; i++) raws.push(await fixture.dial(1))
    expect(raws.map(({ closed }) => closed)).toEqual([
      ...new Array<boolean>(7).fill(true),
      false,
      false,
      false,
    ])
    // A member still gets in.
    await fixture.dial(1, helloOf(2), frame('hello'))
    expect(fixture.received).toEqual(['1 from 2: hello'])
    for (const raw of raws) raw.connection.destroy()
    await fixture.clock.untilIdle()
    const floodLines = fixture.logged.filter((line) => !line.includes('for elections'))
    expect(floodLines.map((line) => line.replace(/\{.*/, ''))).toEqual([
      'warn Too many connections to the election port have not identified themselves; the oldest are closed for now ',
      'info Connections to the election port identify themselves again ',
    ])
    await fixture.dial(1, helloOf(3), frame('vote'))
    expect(fixture.received).toEqual(['1 from 2: hello', '1 from 3: vote'])
  })

  it('that is refused is logged once in ten seconds for each kind of reason, however many come', async ({
    fixture,
  }) => {
    await fixture.startedConnections(1)
    for (let i = 0; i < 50; i++) await fixture.dial(1, bytes('ffffffffffffffff'))
    for (let i = 0; i < 50; i++) await fixture.dial(1, helloOf(99))
    expect(fixture.logged.length).toBe(2)
    await fixture.advance(10_000)
    await fixture.dial(1, helloOf(98))
    expect(fixture.logged.length).toBe(3)
    expect(fixture.logged[2]).toContain('"others":49')
  })

  it('of unknown servers is accepted up to a limit where they are allowed', async ({ fixture }) => {
    const one = await fixture.startedConnections(1, { acceptsUnknownServers: true, maxUnknownServers: 2 })
    const raws = []
    for (const id of [7, 8, 9]) raws.push(await fixture.dial(1, helloOf(id)))
    expect(one.connected).toEqual([7, 8])
    expect(fixture.logged.at(-1)).toContain('2 servers outside of the configuration are connected already')
    raws[0]!.connection.destroy()
    await fixture.clock.untilIdle()
    await fixture.dial(1, helloOf(9))
    expect(one.connected).toEqual([8, 9])
  })

  it('of an unknown server must be followed by messages', async ({ fixture }) => {
    const one = await fixture.startedConnections(1, { acceptsUnknownServers: true })
    await fixture.dial(1, helloOf(7))
    const sends = await fixture.dial(1, helloOf(8), frame('vote'))
    await fixture.dial(1, helloOf(3))
    await fixture.advance(5000)
    expect(one.connected).toEqual([3, 8])
    await fixture.advance(120_000)
    sends.connection.write(frame('vote'))
    await fixture.advance(120_000)
    expect(one.connected).toEqual([3, 8])
    await fixture.advance(300_000)
    expect([one.connected, fixture.timers]).toEqual([[3], []])
  })

  it('without a proof does not replace a connection with one', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(2)
    const proved = new WeakSet<object>()
    const four = await fixture.startedConnections(4, {
      security: {
        acceptLogin: () => undefined,
        refusalOfAccepted: () => undefined,
        isAuthenticated: (connection) => proved.has(connection),
        open: (connection, { hello }) => {
          proved.add(connection)
          connection.write(hello!)
          return Promise.resolve(new Uint8Array(0))
        },
      },
    })
    await fixture.send(four, 2, 'vote')
    await fixture.advance(2000)
    const stranger = await fixture.dial(4, helloOf(2))
    expect([stranger.closed, accepted.map(({ closed }) => closed)]).toEqual([true, [false]])
    expect(fixture.logged.at(-1)).toContain('server 2 is connected, has proved its id')
  })
})

describe('messages', () => {
  it('that are not sent are replaced by the newest', async ({ fixture, three }) => {
    for (const word of ['a', 'b', 'c']) await fixture.send(three, 1, word)
    await fixture.startedConnections(1)
    await fixture.advance(100)
    expect(fixture.received).toEqual(['1 from 3: c'])
  })

  it('are replaced by the newest while the other server does not read', async ({ fixture, one }) => {
    const three = await fixture.dial(1, helloOf(3))
    three.connection.pause()
    one.send(3, new Uint8Array(70_000))
    for (const word of ['old', 'new']) await fixture.send(one, 3, word)
    three.connection.resume()
    await fixture.clock.untilIdle()
    expect(three.received.slice(8 + 140_000)).toBe(hex(frame('new')))
  })

  it('start with the last one on a new connection', async ({ fixture, one }) => {
    const first = await fixture.dial(1, helloOf(3))
    await fixture.send(one, 3, 'vote')
    first.connection.destroy()
    await fixture.clock.untilIdle()
    const second = await fixture.dial(1, helloOf(3))
    expect(second.received).toBe(hex(frame('vote')))
  })

  it.each([
    ['no bytes', '00000000'],
    ['more than 512 KiB', '00080001'],
    ['a negative length', 'ffffffff'],
  ])('of %s end the connection with a line in the log', async (_, length) => {
    const fixture = new ElectionFixture()
    const one = await fixture.startedConnections(1)
    const three = await fixture.dial(1, helloOf(3), frame('vote'), bytes(length))
    expect([three.closed, one.connected, fixture.received]).toEqual([true, [], ['1 from 3: vote']])
    expect(fixture.logged.at(-1)).toContain('Expected a frame of 1 to 524288 bytes')
  })
})

describe('a member that cannot be reached', () => {
  it('is dialed again after growing delays, and logged once', async ({ fixture, three }) => {
    await fixture.send(three, 1, 'vote')
    const delays: number[] = []
    for (let i = 0; i < 8; i++) {
      const next = fixture.clock.pendingTimers()[0]!
      expect(next.name).toBe('election connection to 1')
      delays.push(next.at - fixture.clock.monotonic())
      await fixture.advance(delays.at(-1)!)
    }
    expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000])
    expect(fixture.logged.filter((line) => line.includes('cannot be reached')).length).toBe(1)
  })

  it('is connected when it is back', async ({ fixture, three }) => {
    three.send(1, text('vote'))
    await fixture.advance(300)
    await fixture.startedConnections(1)
    await fixture.advance(5000)
    expect(fixture.received).toEqual(['1 from 3: vote'])
  })

  it('is reported as unreachable when its connection closes, until it is connected again', async () => {
    const fixture = new ElectionFixture()
    const reached: string[] = []
    const three = await fixture.startedConnections(3, {
      reachabilityChanged: (to, reachable) =>
        reached.push(`${to} ${reachable ? 'is reachable' : 'is unreachable'}`),
    })
    await fixture.send(three, 1, 'hello')
    expect(reached).toEqual([])
    for (const _ of ['first', 'second']) {
      const one = await fixture.startedConnections(1)
      await fixture.advance(1000)
      await one.close()
      await fixture.clock.untilIdle()
    }
    expect(reached).toEqual(['1 is reachable', '1 is unreachable', '1 is reachable', '1 is unreachable'])
  })

  it('is dialed again when a connection is lost, soon if messages had come over it', async ({ fixture }) => {
    const { accepted } = await fixture.listenAs(1)
    const three = await fixture.startedConnections(3)
    three.connect(1)
    await fixture.clock.untilIdle()
    for (const pause of [100, 200]) {
      accepted.at(-1)!.connection.destroy()
      await fixture.clock.untilIdle()
      expect(fixture.clock.pendingTimers()[0]!.at - fixture.clock.monotonic()).toBe(pause)
      await fixture.advance(pause)
    }
    accepted.at(-1)!.connection.write(frame('vote'))
    await fixture.clock.untilIdle()
    accepted.at(-1)!.connection.destroy()
    await fixture.clock.untilIdle()
    expect(fixture.clock.pendingTimers()[0]!.at - fixture.clock.monotonic()).toBe(100)
  })

  it('does not delay other servers that connect meanwhile', async ({ fixture, one }) => {
    one.send(3, text('vote 1'))
    await fixture.advance(4000)
    const three = await fixture.dial(1, helloOf(3))
    expect(three.received).toBe(hex(frame('vote 1')))
    expect(fixture.timers).toEqual([])
  })

  it('is not logged as unreachable when it has connected while it was dialed', async ({ fixture, one }) => {
    one.connect(3)
    await fixture.dial(1, helloOf(3))
    expect(fixture.logged.filter((line) => line.includes('cannot be reached'))).toEqual([])
    expect(fixture.timers).toEqual([])
  })

  it('is disconnected when it is no longer a member', async ({ fixture }) => {
    const members = new Set([1, 2, 3])
    const three = await fixture.startedConnections(3, {
      addressesOf: (id) => (members.has(id) ? [addressOf(id)] : []),
    })
    const { accepted } = await fixture.listenAs(2)
    for (const id of [1, 2]) three.connect(id)
    await fixture.clock.untilIdle()
    expect(three.connected).toEqual([2])
    members.delete(1)
    members.delete(2)
    three.membersChanged()
    await fixture.clock.untilIdle()
    expect([three.connected, accepted[0]!.closed, fixture.timers]).toEqual([[], true, []])
  })
})

describe('the election port', () => {
  it('is bound again after a delay while another process has it', async ({ fixture }) => {
    const { close } = await fixture.listenAs(1)
    const one = fixture.connections(1)
    const started = one.start()
    await fixture.clock.untilIdle()
    await close()
    await fixture.advance(1000)
    await started
    expect(one.addresses).toEqual([addressOf(1)])
  })

  it('is not bound after three failed attempts, and all other ports are closed', async ({ fixture }) => {
    await fixture.listenAs(1)
    const one = fixture.connections(1, { listenAddresses: () => [addressOf(6), addressOf(1)] })
    const failed = expect(one.start()).rejects.toMatchObject({ name: 'NetworkError', code: 'EADDRINUSE' })
    for (let i = 0; i < 3; i++) await fixture.advance(1000)
    await failed
    await fixture.listenAs(6)
    expect(fixture.logged.length).toBe(2)
  })

  it('moves with the configuration, and stays while the new address cannot be bound', async ({ fixture }) => {
    let address = addressOf(1)
    const one = await fixture.startedConnections(1, { listenAddresses: () => [address], bindAttempts: 1 })
    const known = await fixture.dial(1, helloOf(3))
    const other = await fixture.listenAs(6)
    address = addressOf(6)
    one.membersChanged()
    await fixture.clock.untilIdle()
    expect(one.addresses).toEqual([addressOf(1)])
    expect(fixture.logged.join()).toContain('cannot be moved')
    await other.close()
    one.membersChanged()
    await fixture.clock.untilIdle()
    expect(one.addresses).toEqual([addressOf(6)])
    // Established connections stay open.
    expect(known.closed).toBe(false)
    await fixture.listenAs(1)
  })

  it('moves to another host with the same port, and back when the new host cannot be bound', async () => {
    const fixture = new ElectionFixture()
    let host = addressOf(1).host
    const refusing: Network = {
      connect: (address) => fixture.network.connect(address),
      listen: (options, accept) =>
        options.host === 'elsewhere.test'
          ? Promise.reject(new NetworkError('Cannot listen on elsewhere.test', 'EADDRNOTAVAIL'))
          : fixture.network.listen(options, accept),
    }
    const one = await fixture.startedConnections(1, {
      network: refusing,
      listenAddresses: () => [{ ...addressOf(1), host }],
      bindAttempts: 1,
    })
    host = 'localhost'
    one.membersChanged()
    await fixture.clock.untilIdle()
    expect(fixture.logged.join()).toContain('The election port has moved')
    expect(fixture.logged.join()).not.toContain('EADDRINUSE')
    host = 'elsewhere.test'
    one.membersChanged()
    await fixture.clock.untilIdle()
    expect(fixture.logged.join()).toContain('cannot be moved')
    await fixture.dial(1, helloOf(3))
    expect(one.connected).toEqual([3])
  })

  it('is free after closing, and no timer is left', async ({ fixture, one }) => {
    const [known, unknown] = [await fixture.dial(1, helloOf(3)), await fixture.dial(1)]
    one.connect(2)
    await fixture.clock.untilIdle()
    await one.close()
    await fixture.clock.untilIdle()
    expect([known.closed, unknown.closed, fixture.timers]).toEqual([true, true, []])
    one.send(2, text('nothing'))
    expect(fixture.timers).toEqual([])
    await fixture.listenAs(1)
  })
})
