import { expect, it } from 'vitest'
import { addressOf, bytes, frame, helloOf, hex, ElectionFixture, text } from './testing/election-fixture.ts'

const joined = (...parts: Uint8Array[]): Uint8Array => bytes(...parts.map(hex))

it.each([
  ['that names an address', helloOf(3)],
  ['of before 3.5', bytes('0000000000000003')],
])('takes the messages that come in one piece with a hello %s, whole or not', async (_, hello) => {
  const rig = new ElectionFixture()
  await rig.startedConnections(1)
  const [second, third] = [frame('second'), frame('third')]
  const raw = await rig.dial(1, joined(hello, frame('first'), second.subarray(0, 6)))
  expect(rig.received).toEqual(['1 from 3: first'])
  raw.wire.write(joined(second.subarray(6), third))
  await rig.clock.untilIdle()
  expect(rig.received).toEqual(['1 from 3: first', '1 from 3: second', '1 from 3: third'])
})

it.each(['h:0', 'h:65536', 'h:', ':7', 'h:7|', '[::1]'])('sends away who says to be at %s', async (place) => {
  const rig = new ElectionFixture()
  const one = await rig.startedConnections(1)
  const length = place.length.toString(16).padStart(8, '0')
  const raw = await rig.dial(1, bytes('ffffffffffff0000 0000000000000003', length, hex(text(place))))
  expect([raw.closed, one.connected]).toEqual([true, []])
  expect(rig.logged[0]).toContain('Expected host:port')
})

it('has done with a connection that gave way to others', async () => {
  const rig = new ElectionFixture()
  await rig.startedConnections(1, { maxUnidentified: 3 })
  for (let i = 0; i < 10; i++) await rig.dial(1)
  expect(rig.timers).toEqual(new Array(3).fill('identification on the election port'))
})

it('takes a stranger that comes again in place of itself, however many others are there', async () => {
  const rig = new ElectionFixture()
  const one = await rig.startedConnections(1, { acceptsUnknownServers: true, maxUnknownServers: 2 })
  const first = await rig.dial(1, helloOf(7))
  await rig.dial(1, helloOf(8))
  const again = await rig.dial(1, helloOf(7))
  expect([first.closed, again.closed, one.connected]).toEqual([true, false, [7, 8]])
})

it('calls a server back where it has said last that it is', async () => {
  const rig = new ElectionFixture()
  const [before, after] = [await rig.listenAs(6), await rig.listenAs(7)]
  const nine = await rig.startedConnections(9, { addressesOf: (id) => (id === 2 ? [addressOf(2)] : []) })
  const from = (port: number): Uint8Array =>
    bytes('ffffffffffff0000 0000000000000002 0000000f', hex(text(`127.0.0.1:${port}`)))
  await rig.dial(9, from(addressOf(6).port))
  expect([before.accepted.length, nine.connected]).toEqual([1, [2]])
  await before.close()
  await rig.dial(9, from(addressOf(7).port))
  expect([after.accepted.length, nine.connected]).toEqual([1, [2]])
})

it('leaves no port open that it was about to open when it was closed', async () => {
  const rig = new ElectionFixture()
  const one = rig.connections(1, { listenAddresses: () => [addressOf(1), addressOf(6)] })
  const starting = one.start()
  await one.close()
  await starting
  await rig.listenAs(1)
  await rig.listenAs(6)
})

it('closes a connection that comes about once its server is no member any more', async () => {
  const rig = new ElectionFixture()
  const { accepted } = await rig.listenAs(2)
  let go = (): void => {}
  const held = new Promise<void>((resolve) => (go = resolve))
  let isMember = true
  const three = await rig.startedConnections(3, {
    addressesOf: (id) => (id === 2 && isMember ? [addressOf(2)] : []),
    network: {
      listen: (at, accepted) => rig.network.listen(at, accepted),
      // Too late to be called off.
      connect: async (address) => {
        await held
        return rig.network.connect(address)
      },
    },
  })
  three.send(2, text('vote'))
  await rig.clock.untilIdle()
  isMember = false
  three.membersChanged()
  go()
  await rig.clock.untilIdle()
  expect(accepted.map(({ closed, received }) => [closed, received])).toEqual([[true, '']])
  expect([three.connected, rig.timers]).toEqual([[], []])
})
