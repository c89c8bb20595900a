import { expect, it } from 'vitest'
import { Reader } from '@zabra/protocol'
import { bytes, ManualWorld } from '../testing/manual-world.ts'
import { replyBytes } from '../testing/scripted-server.ts'

/** Handles the SASL requests (op code 102) of clients in place of the server. */
function saslServer(world: ManualWorld): void {
  world.faults.toServer = (chunk, connection) => {
    const reader = new Reader(chunk)
    if (chunk.length < 12) return chunk
    reader.int()
    const xid = reader.int()
    if (reader.int() !== 102) return chunk
    const reply = replyBytes(xid, { zxid: 0n, body: (w) => w.buffer(bytes('ok')) })
    world.clock.immediate(() => connection.deliver(reply))
    return undefined
  }
}

/** Returns logins of two steps. The second login waits in step `at` for its mechanism (a KDC, say). */
function waitingLogins(at: number) {
  let made = 0
  let release: (token: Uint8Array) => void = () => {}
  let fail: (reason: Error) => void = () => {}
  const waiting = new Promise<Uint8Array>((resolve, reject) => {
    release = resolve
    fail = reject
  })
  const sasl = () => {
    const mine = ++made
    let steps = 0
    return {
      name: 'TEST',
      step: (): Promise<Uint8Array | undefined> => {
        steps++
        if (mine === 2 && steps === at) return waiting
        return Promise.resolve(steps === 1 ? bytes('hi') : undefined)
      },
    }
  }
  return { sasl, release, fail, made: () => made }
}

it('a SASL exchange whose connection broke does not take a reply of the next connection', async () => {
  const world = await ManualWorld.start()
  saslServer(world)
  const { sasl, release, made } = waitingLogins(2)
  const client = await world.client({ sasl })
  world.lastConnection.cut()
  for (let i = 0; i < 100 && made() < 2; i++) await world.advance(50)
  await world.settle()
  // The second login waits for its mechanism when the connection breaks; the third one succeeds.
  world.lastConnection.cut()
  for (let i = 0; i < 100 && client.state !== 'connected'; i++) await world.advance(50)
  expect([made(), client.state]).toEqual([3, 'connected'])
  const connections = world.connections.length
  release(bytes('late'))
  await world.settle()
  expect(await world.outcome(client.exists('/'))).toBeDefined()
  expect([client.state, world.connections.length]).toEqual(['connected', connections])
  await world.end()
})

it.each([
  ['while the client waits for the next connection', 0],
  ['after the login on the next connection', 5000],
])('a mechanism that fails %s does not close the client', async (_when, waitMs) => {
  const world = await ManualWorld.start()
  saslServer(world)
  const { sasl, fail, made } = waitingLogins(1)
  const client = await world.client({ sasl })
  world.lastConnection.cut()
  // The second login waits for its mechanism until the client gives the connection up.
  for (let i = 0; i < 100 && made() < 2; i++) await world.advance(50)
  world.lastConnection.cut()
  await world.settle()
  await world.advance(waitMs)
  fail(new Error('the KDC did not answer'))
  await world.advance(5000)
  expect([made(), client.state]).toEqual([3, 'connected'])
  await world.end()
})

it('a SASL exchange that never ends counts as a failed attempt', async () => {
  const world = await ManualWorld.start()
  let made = 0
  const connecting = world.connect({
    sasl: () => {
      made++
      return { name: 'HANGS', step: () => new Promise<undefined>(() => {}) }
    },
  })
  connecting.catch(() => {})
  await world.advance(60_000)
  expect(made).toBeGreaterThan(1)
})

it('an invalid argument that waits for a SASL login causes no unhandled rejection', async () => {
  const world = await ManualWorld.start()
  saslServer(world)
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
  try {
    const sasl = () => {
      let steps = 0
      return { name: 'T', step: () => Promise.resolve(steps++ === 0 ? bytes('hi') : undefined) }
    }
    const client = await world.client({ sasl })
    world.lastConnection.cut()
    await world.settle()
    ;(async () => client.reconfig({ version: 5 as never }))().catch(() => {})
    await world.advance(3000)
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(unhandled).toEqual([])
  } finally {
    process.off('unhandledRejection', note)
  }
  await world.end()
})
