// oxlint-disable no-callback-in-promise, no-base-to-string -- promises are what is watched
import { Reader } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { CallTracker, seeds } from '../testing/call-tracker.ts'
import { bytes, ManualWorld } from '../testing/manual-world.ts'
import { replyBytes } from '../testing/scripted-server.ts'
import type { Client } from '../client-api.ts'

it.each(seeds)('seed %i: closing in any state settles every call and leaves no timer', async (seed) => {
  const random = new SeededRandom(seed * 104_729)
  const world = await ManualWorld.start()
  const calls = new CallTracker()
  const track = calls.track.bind(calls)
  const withSasl = random.below(3) === 0
  let mode: 'pass' | 'swallow' = 'pass'
  let down = false
  let ro = false
  const first = new WeakSet<object>()
  world.faults.open = () => {
    if (down) throw new Error('down')
  }
  world.faults.toClient = (chunk, connection) => {
    if (mode === 'swallow') return undefined
    if (!first.has(connection)) {
      first.add(connection)
      if (ro && chunk.length >= 41) {
        chunk = chunk.slice()
        chunk[40] = 1
      }
    }
    return chunk
  }
  world.faults.toServer = (chunk, connection) => {
    if (!withSasl || chunk.length < 12) return chunk
    // Handles SASL requests; each is alone in its chunk or follows auth packets.
    for (let at = 0; at + 12 <= chunk.length;) {
      const reader = new Reader(chunk, at)
      const length = reader.int()
      const xid = reader.int()
      if (at > 0 || chunk.length !== 49) {
        if (reader.int() === 102) {
          const answer = replyBytes(xid, { zxid: 0n, body: (w) => w.buffer(bytes('ok')) })
          if (mode === 'pass') world.clock.immediate(() => connection.deliver(answer))
          return at === 0 ? undefined : chunk.slice(0, at)
        }
      }
      at += 4 + length
    }
    return chunk
  }
  const connectAbort = new AbortController()
  const connecting = world.connect({
    sessionTimeoutMs: 3000,
    servers: 'a:2181,b:2181',
    signal: connectAbort.signal,
    sessionExpiry: random.below(2) === 0 ? 'renew' : 'close',
    readOnly: random.below(2) === 0,
    ...(withSasl
      ? {
          sasl: () => {
            let n = 0
            return {
              name: 'T',
              step: () =>
                new Promise<Uint8Array | undefined>((resolve) => {
                  const value = n++ === 0 ? bytes('hi') : undefined
                  if (random.below(3) === 0)
                    world.clock.after(random.below(500), 'mechanism', () => resolve(value))
                  else resolve(value)
                }),
            }
          },
        }
      : {}),
  })
  track('connect', connecting)
  connecting.catch(() => {})
  if (random.below(10) === 0) connectAbort.abort()
  await world.advance(2000)
  const client = (await Promise.race([
    connecting.catch(() => undefined),
    new Promise<void>((resolve) => setImmediate(resolve)),
  ])) as Client | undefined
  if (client !== undefined) {
    const steps = random.below(40)
    for (let step = 0; step < steps; step++) {
      const actions: readonly (() => unknown)[] = [
        () => track('getData', client.getData('/')),
        () => track('create', client.create('/s-', { data: bytes(''), mode: 'ephemeralSequential' })),
        () =>
          track(
            'watch',
            client.watch('/').then(async (w) => {
              for await (const _event of w);
            }),
          ),
        () =>
          track(
            'fired',
            client.watchOnce('/', 'children').then(({ fired }) => fired),
          ),
        () => world.lastConnection.cut(),
        () => (mode = random.below(2) === 0 ? 'swallow' : 'pass'),
        () => (down = random.below(2) === 0),
        () => world.advance(random.below(2500)),
        () => track('addAuth', client.addAuth('digest', bytes(`u${step}:p`))),
        () =>
          track(
            'servers',
            client.updateServerList(['a:2181', 'b:2181', 'c:2181'].slice(0, 1 + random.below(3))),
          ),
        () => (ro = random.below(2) === 0),
        () => track('guaranteed', client.delete('/x', { guaranteed: true, missingOk: true })),
        () =>
          track(
            'wait',
            client.create('/w', {
              data: bytes(''),
              waitForReadWrite: true,
              timeoutMs: 100 + random.below(5000),
            }),
          ),
      ]
      await actions[random.below(13)]!()
      if (random.below(2) === 0) await world.settle()
    }
    if (random.below(4) === 0) track('detach', client.detach())
    else track('close', client.close())
    track('closed', client.closed)
    await world.advance(2100)
  } else {
    connectAbort.abort()
    await world.advance(100)
  }
  const { pending, wrong } = calls
  expect({ pending, wrong }).toEqual({ pending: [], wrong: [] })
  expect(await calls.leftovers(world)).toEqual([])
  mode = 'pass'
  await world.stop()
})
