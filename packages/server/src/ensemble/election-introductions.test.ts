import { NetworkError } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { addressOf, bytes, frame, helloOf, hex, ElectionFixture, text } from './testing/election-fixture.ts'

const joined = (...parts: Uint8Array[]): Uint8Array => bytes(...parts.map(hex))

it.each([
  ['that names an address', helloOf(3)],
  ['of before 3.5', bytes('0000000000000003')],
])('messages in the same chunk as a hello %s are received, complete or not', async (_, hello) => {
  const fixture = new ElectionFixture()
  await fixture.startedConnections(1)
  const [second, third] = [frame('second'), frame('third')]
  const raw = await fixture.dial(1, joined(hello, frame('first'), second.subarray(0, 6)))
  expect(fixture.received).toEqual(['1 from 3: first'])
  raw.connection.write(joined(second.subarray(6), third))
  await fixture.clock.untilIdle()
  expect(fixture.received).toEqual(['1 from 3: first', '1 from 3: second', '1 from 3: third'])
})

it.each(['h:0', 'h:65536', 'h:', ':7', 'h:7|', '[::1]'])(
  'a hello that announces the address %s is rejected',
  async (address) => {
    const fixture = new ElectionFixture()
    const one = await fixture.startedConnections(1)
    const length = address.length.toString(16).padStart(8, '0')
    const raw = await fixture.dial(1, bytes('ffffffffffff0000 0000000000000003', length, hex(text(address))))
    expect([raw.closed, one.connected]).toEqual([true, []])
    expect(fixture.logged[0]).toContain('Expected host:port')
  },
)

it('a connection from an address that is not of the member whose id it claims is refused, and named', async () => {
  const fixture = new ElectionFixture()
  const reason = 'it claims to be server 3'
  const one = await fixture.startedConnections(1, { addressRefusal: () => ({ peer: 3, reason }) })
  const raw = await fixture.dial(1, joined(helloOf(3), frame('vote')))
  expect([raw.closed, one.connected, fixture.received]).toEqual([true, [], []])
  expect(fixture.logged[0]).toContain(reason)
})

it('a connection is not read while the names of its member are resolved, and its first messages are kept', async () => {
  const fixture = new ElectionFixture()
  const checks: ((refusal: { reason: string } | undefined) => void)[] = []
  const one = await fixture.startedConnections(1, {
    addressRefusal: () => new Promise((resolve) => checks.push(resolve)),
  })
  const raws = [await fixture.dial(1, joined(helloOf(3), frame('first'))), await fixture.dial(1, helloOf(4))]
  raws[0]!.connection.write(frame('second'))
  await fixture.clock.untilIdle()
  expect([fixture.received, one.connected]).toEqual([[], []])
  checks[0]!(undefined)
  checks[1]!({ reason: 'it comes from elsewhere' })
  await fixture.clock.untilIdle()
  expect(fixture.received).toEqual(['1 from 3: first', '1 from 3: second'])
  expect([raws.map(({ closed }) => closed), one.connected]).toEqual([[false, true], [3]])
})

it('a connection whose names are never resolved is closed with the others that do not identify themselves', async () => {
  const fixture = new ElectionFixture()
  await fixture.startedConnections(1, { addressRefusal: () => new Promise(() => {}) })
  const raw = await fixture.dial(1, helloOf(3))
  await fixture.advance(5000)
  expect([raw.closed, fixture.timers]).toEqual([true, []])
})

it('an evicted pending connection leaves no timer', async () => {
  const fixture = new ElectionFixture()
  await fixture.startedConnections(1, { maxUnidentified: 3 })
  for (let i = 0; i < 10; i++) await fixture.dial(1)
  expect(fixture.timers).toEqual(new Array(3).fill('identification on the election port'))
})

it('an unknown server that reconnects replaces its former connection, also at the limit of unknown servers', async () => {
  const fixture = new ElectionFixture()
  const one = await fixture.startedConnections(1, { acceptsUnknownServers: true, maxUnknownServers: 2 })
  const first = await fixture.dial(1, helloOf(7))
  await fixture.dial(1, helloOf(8))
  const again = await fixture.dial(1, helloOf(7))
  expect([first.closed, again.closed, one.connected]).toEqual([true, false, [7, 8]])
})

it('a server with a smaller id is called back at the address of its last hello', async () => {
  const fixture = new ElectionFixture()
  const [before, after] = [await fixture.listenAs(6), await fixture.listenAs(7)]
  const nine = await fixture.startedConnections(9, { addressesOf: (id) => (id === 2 ? [addressOf(2)] : []) })
  const from = (port: number): Uint8Array =>
    bytes('ffffffffffff0000 0000000000000002 0000000f', hex(text(`127.0.0.1:${port}`)))
  await fixture.dial(9, from(addressOf(6).port))
  expect([before.accepted.length, nine.connected]).toEqual([1, [2]])
  await before.close()
  await fixture.advance(1000)
  await fixture.dial(9, from(addressOf(7).port))
  expect([after.accepted.length, nine.connected]).toEqual([1, [2]])
})

it('closing while the ports are being bound leaves no port open', async () => {
  const fixture = new ElectionFixture()
  const one = fixture.connections(1, { listenAddresses: () => [addressOf(1), addressOf(6)] })
  const starting = one.start()
  await one.close()
  await starting
  await fixture.listenAs(1)
  await fixture.listenAs(6)
})

it('a connection that is established after its server was removed is closed', async () => {
  const fixture = new ElectionFixture()
  const { accepted } = await fixture.listenAs(2)
  let go = (): void => {}
  const held = new Promise<void>((resolve) => (go = resolve))
  let isMember = true
  const three = await fixture.startedConnections(3, {
    addressesOf: (id) => (id === 2 && isMember ? [addressOf(2)] : []),
    network: {
      listen: (at, accepted) => fixture.network.listen(at, accepted),
      // The connection is established although its signal has aborted.
      connect: async (address) => {
        await held
        return fixture.network.connect(address)
      },
    },
  })
  await fixture.send(three, 2, 'vote')
  isMember = false
  three.membersChanged()
  go()
  await fixture.clock.untilIdle()
  expect(accepted.map(({ closed, received }) => [closed, received])).toEqual([[true, '']])
  expect([three.connected, fixture.timers]).toEqual([[], []])
})

/** Returns the hello of the second version with these addresses. */
const announcing = (id: number, addresses: string): Uint8Array =>
  bytes(
    'ffffffffffff0001',
    id.toString(16).padStart(16, '0'),
    addresses.length.toString(16).padStart(8, '0'),
    hex(text(addresses)),
  )

/** Starts server 9, which notes the addresses that it dials. */
async function dialing(): Promise<{ fixture: ElectionFixture; dialed: string[] }> {
  const fixture = new ElectionFixture()
  const dialed: string[] = []
  await fixture.startedConnections(9, {
    acceptsUnknownServers: true,
    addressesOf: (id) => (id === 2 ? [{ host: 'two.example', port: 3888 }] : []),
    network: {
      listen: (at, accepted) => fixture.network.listen(at, accepted),
      connect: async ({ host, port }) => {
        dialed.push(`${host}:${port}`)
        throw new NetworkError(`Cannot connect to ${host}:${port} (ECONNREFUSED)`, 'ECONNREFUSED')
      },
    },
  })
  return { fixture, dialed }
}

it('a server is called back at hosts that a configuration gives it, and at the one that its hello came from', async () => {
  const { fixture, dialed } = await dialing()
  await fixture.dial(9, announcing(2, 'two.example:4888|10.9.9.9:22|[fd00::1]:22'))
  expect(dialed).toEqual(['two.example:3888', 'two.example:4888', '127.0.0.1:22'])
  dialed.length = 0
  await fixture.dial(9, announcing(7, '10.9.9.9:22|localhost:80|two.example:22'))
  expect(dialed).toEqual(['127.0.0.1:22', 'localhost:80'])
})

it('a hello that announces very many addresses has four of them dialed', async () => {
  const { fixture, dialed } = await dialing()
  await fixture.dial(9, announcing(7, Array.from({ length: 100 }, (_, i) => `127.0.0.1:${i + 1}`).join('|')))
  expect(dialed).toHaveLength(4)
})

it('servers are called back ten times in a second at most, beyond a burst, whatever ids their hellos have', async () => {
  const { fixture, dialed } = await dialing()
  for (let id = 100; id < 200; id++) await fixture.dial(9, announcing(id % 9, `127.0.0.1:${id}`))
  const member = dialed.filter((one) => one.includes('two.example')).length
  expect(dialed.length).toBeLessThanOrEqual(2 * 16 + member)
  dialed.length = 0
  await fixture.advance(1000)
  for (let id = 200; id < 300; id++) await fixture.dial(9, announcing(7, `127.0.0.1:${id}`))
  expect(dialed.filter((one) => one.startsWith('127'))).toHaveLength(10)
  expect(fixture.timers).toEqual(['election connection to 2'])
})

it('servers that cannot be called back, and connections that come and go, take a few lines of the log', async () => {
  const { fixture } = await dialing()
  for (let id = 0; id < 100; id++) await fixture.dial(9, announcing(3 + (id % 5), `127.0.0.1:${id + 1}`))
  for (let id = 0; id < 100; id++) (await fixture.dial(9, announcing(10 + id, 'h:1'))).connection.destroy()
  expect(fixture.logged.length).toBeLessThanOrEqual(3 * 8)
})
