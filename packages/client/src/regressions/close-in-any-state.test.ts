// oxlint-disable no-callback-in-promise, no-base-to-string -- promises are what is watched
import { Reader, Writer } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { ZooKeeperError } from '../errors.ts'
import { bytes, ManualWorld } from '../testing/manual-world.ts'
import type { Client } from '../client-api.ts'

/** ZABRA_CLIENT_SEEDS sets the number of seeds; a failing seed is in the name of its test. */
const seeds = Array.from({ length: Number(process.env['ZABRA_CLIENT_SEEDS'] ?? 60) }, (_, i) => i + 1)

const own = /^(heartbeat|reconnect|deadline|connection attempt|local expiry|close|probe|search|drain)/

it.each(seeds)('seed %i: closing in any state settles every call and leaves no timer', async (seed) => {
  const random = new SeededRandom(seed * 104_729)
  const world = await ManualWorld.start()
  const unhandled: unknown[] = []
  const note = (reason: unknown): void => void unhandled.push(reason)
  process.on('unhandledRejection', note)
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
          const w = new Writer()
          const mark = w.beginFrame()
          w.int(xid)
          w.long(0n)
          w.int(0)
          w.buffer(bytes('ok'))
          w.endFrame(mark)
          const answer = w.take()
          if (mode === 'pass') world.clock.immediate(() => connection.deliver(answer))
          return at === 0 ? undefined : chunk.slice(0, at)
        }
      }
      at += 4 + length
    }
    return chunk
  }
  const pending = new Map<number, string>()
  const wrong: string[] = []
  let id = 0
  const track = (what: string, promise: Promise<unknown>): void => {
    const mine = id++
    pending.set(mine, what)
    const done = (error?: unknown): void => {
      pending.delete(mine)
      if (error !== undefined && !(error instanceof ZooKeeperError))
        wrong.push(`${what}: ${String((error as Error).stack ?? error)}`)
    }
    promise.then(() => done(), done)
  }
  const connectAbort = new AbortController()
  const connecting = world.connect({
    sessionTimeout: 3000,
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
      switch (random.below(13)) {
        case 0:
          track('getData', client.getData('/'))
          break
        case 1:
          track('create', client.create('/s-', bytes(''), { mode: 'ephemeralSequential' }))
          break
        case 2:
          track(
            'watch',
            client.watch('/').then(async (w) => {
              for await (const _event of w);
            }),
          )
          break
        case 3:
          track(
            'fired',
            client.watchOnce('/', 'children').then(({ fired }) => fired),
          )
          break
        case 4:
          world.lastConnection.cut()
          break
        case 5:
          mode = random.below(2) === 0 ? 'swallow' : 'pass'
          break
        case 6:
          down = random.below(2) === 0
          break
        case 7:
          await world.advance(random.below(2500))
          break
        case 8:
          track('addAuth', client.addAuth('digest', bytes(`u${step}:p`)))
          break
        case 9:
          track(
            'servers',
            client.updateServerList(['a:2181', 'b:2181', 'c:2181'].slice(0, 1 + random.below(3))),
          )
          break
        case 10:
          ro = random.below(2) === 0
          break
        case 11:
          track('guaranteed', client.delete('/x', { guaranteed: true, missingOk: true }))
          break
        case 12:
          track(
            'wait',
            client.create('/w', bytes(''), { waitForReadWrite: true, timeout: 100 + random.below(5000) }),
          )
      }
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
  expect({ left: [...pending.values()], wrong }).toEqual({ left: [], wrong: [] })
  expect(
    world.clock
      .pendingTimers()
      .map(({ name }) => name)
      .filter((name) => own.test(name)),
  ).toEqual([])
  await new Promise((resolve) => setTimeout(resolve, 0))
  expect(unhandled).toEqual([])
  process.off('unhandledRejection', note)
  mode = 'pass'
  await world.stop()
})
