import { describe, expect, it } from 'vitest'
import { ZooKeeperError } from './errors.ts'
import { bytes, text, ManualWorld, type TappedConnection } from './testing/manual-world.ts'
import type { Client } from './client-api.ts'
import type { OneShotWatch, Watcher } from './types.ts'

type Fault = 'swallowed' | 'delayed' | 'cut before' | 'cut after' | 'half written' | 'expired'
const faults: readonly Fault[] = [
  'swallowed',
  'delayed',
  'cut before',
  'cut after',
  'half written',
  'expired',
]
type Direction = 'toServer' | 'toClient'

/** The outcome of a call. */
type Settled<T> = { value: T } | { error: ZooKeeperError }
const outcome = <T>(promise: Promise<T>): Promise<Settled<T>> =>
  promise.then(
    (value) => ({ value }),
    (error: ZooKeeperError) => ({ error }),
  )

interface Outcome {
  created: Settled<unknown>
  written: Settled<unknown>
  versioned: Settled<unknown>
  multi: Settled<unknown>
  sequential: Settled<{ path: string }>
  deleted: Settled<unknown>
  once: OneShotWatch | undefined
  lasting: Watcher | undefined
}

/** Makes every kind of call, some of them without awaiting the previous one. */
async function script(client: Client): Promise<Outcome> {
  const created = await outcome(client.create('/a', { data: bytes('0'), idempotent: true }))
  const once = await outcome(client.watchOnce('/a', 'exists'))
  const lasting = await outcome(client.watch('/', { mode: 'persistentRecursive' }))
  const [written, versioned, multi, ...reads] = await Promise.all([
    outcome(client.setData('/w', bytes('1'))),
    outcome(client.setData('/v', bytes('1'), { version: 0, idempotent: true })),
    outcome(
      client.multi([
        { op: 'create', path: '/m1' },
        { op: 'create', path: '/m2' },
      ]),
    ),
    outcome(client.getData('/w')),
    // These form a batch when batchReads is set.
    outcome(client.getData('/v')),
    outcome(client.getData('/none')),
  ])
  checkReads(reads)
  const sequential = await outcome(client.create('/q-', { data: bytes('x'), mode: 'ephemeralSequential' }))
  const deleted = await outcome(client.delete('/d'))
  return {
    created,
    written,
    versioned,
    multi,
    sequential,
    deleted,
    once: 'value' in once ? once.value : undefined,
    lasting: 'value' in lasting ? lasting.value : undefined,
  }
}

/** Reads return what the tree holds; only the end of the session makes them fail. */
function checkReads([, v, none]: Settled<unknown>[]): void {
  const isExpired = (what: Settled<unknown>): boolean =>
    'error' in what && what.error.code === 'SESSION_EXPIRED'
  if (!isExpired(v!)) expect('value' in v!).toBe(true)
  if (!isExpired(none!)) expect(none).toMatchObject({ error: { code: 'NO_NODE', path: '/none' } })
}

/** Returns the offset of each frame in a chunk; both sides write whole frames. */
function frameStarts(chunk: Uint8Array): number[] {
  const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.byteLength)
  const starts: number[] = []
  for (let at = 0; at < chunk.length; at += 4 + view.getInt32(at)) starts.push(at)
  return starts
}

/** Applies an action to the `at`-th frame of a direction; the frames before it in the same chunk are delivered. */
function strike(world: ManualWorld, fault: Fault, direction: Direction, at: number): void {
  let count = 0
  const held = new Map<TappedConnection, Uint8Array[]>()
  const silent = new Set<TappedConnection>()
  world.faults[direction] = (chunk, connection) => {
    if (silent.has(connection)) return undefined
    const waiting = held.get(connection)
    if (waiting !== undefined) {
      waiting.push(chunk.slice())
      return undefined
    }
    const starts = frameStarts(chunk)
    const start = starts[at - count]
    const end = starts[at - count + 1] ?? chunk.length
    count += starts.length
    if (start === undefined || count - starts.length > at) return chunk
    const upTo = (offset: number): Uint8Array | undefined =>
      offset === 0 ? undefined : chunk.slice(0, offset)
    const cutSoon = (): void => world.clock.immediate(() => world.clock.immediate(() => connection.cut()))
    switch (fault) {
      case 'expired':
        isolate(world)
        return upTo(start)
      case 'swallowed':
        silent.add(connection)
        return upTo(start)
      case 'delayed': {
        const rest = [chunk.slice(start)]
        held.set(connection, rest)
        world.clock.after(3000, 'late bytes', () => {
          held.delete(connection)
          for (const part of rest) {
            if (direction === 'toServer') connection.send(part)
            else connection.deliver(part)
          }
        })
        return upTo(start)
      }
      case 'cut before':
        if (start === 0) connection.cut()
        else cutSoon()
        return upTo(start)
      case 'cut after':
        cutSoon()
        return upTo(end)
      case 'half written':
        cutSoon()
        return upTo((start + end) >> 1)
    }
  }
}

/** Blocks old and new connections until the session has expired on both sides. */
function isolate(world: ManualWorld): void {
  const { faults } = world
  faults.toServer = faults.toClient = () => undefined
  faults.open = () => {
    throw new Error('unreachable')
  }
  world.clock.after(18_000, 'end of the isolation', () => {
    delete faults.toServer
    delete faults.toClient
    delete faults.open
  })
}

async function prepared(): Promise<{ world: ManualWorld; other: Client }> {
  const world = await ManualWorld.start()
  const other = await world.client()
  for (const path of ['/w', '/v', '/d']) await world.outcome(other.create(path, { data: bytes('0') }))
  return { world, other }
}

/** Returns the frames that the script produces without faults. */
async function count(direction: Direction, batchReads: boolean): Promise<number> {
  const { world } = await prepared()
  let frames = 0
  world.faults[direction] = (chunk) => {
    frames += frameStarts(chunk).length
    return chunk
  }
  await world.within(10_000, script(await world.client({ batchReads })))
  // Leaves out the frames that close the clients: no fault in the script could hit them.
  const made = frames
  await world.end()
  return made
}

async function live(fault: Fault, direction: Direction, at: number, batchReads: boolean): Promise<void> {
  const { world, other } = await prepared()
  strike(world, fault, direction, at)
  const connecting = world.connect({ sessionTimeoutMs: 12_000, batchReads })
  const client = await world.within(60_000, connecting)
  // Every promise settles in bounded time.
  const outcome = await world.within(60_000, script(client))
  delete world.faults[direction]
  await world.advance(20_000)
  const settled = client.state === 'connected' ? client : undefined
  expect(settled, 'the client recovers automatically').toBeDefined()
  if (fault === 'expired' && at > 0) expect(client.session.generation, 'the session has expired').toBe(2)
  await checkWrites(world, other, outcome, client.session.generation)
  await checkWatches(world, other, outcome)
  await world.outcome(client.close())
  await world.settle()
  expect(world.server.stats().watches, 'no watch remains').toBe(0)
  const left = (await world.outcome(other.getChildren('/'))).children
  expect(
    left.filter((name) => name.includes('q-')),
    'no ephemeral znode remains',
  ).toEqual([])
  await world.end()
}

/** An acknowledged write is applied, and a rejected one is not. */
async function checkWrites(
  world: ManualWorld,
  other: Client,
  outcome: Outcome,
  generation: number,
): Promise<void> {
  const exists = async (path: string): Promise<boolean> =>
    (await world.outcome(other.exists(path))) !== undefined
  const content = async (path: string): Promise<string> =>
    text((await world.outcome(other.getData(path))).data)
  const check = (what: Settled<unknown>, done: boolean): void => {
    if ('value' in what) expect(done).toBe(true)
    else {
      expect(what.error).toBeInstanceOf(ZooKeeperError)
      if (!what.error.maybeApplied) expect(done).toBe(false)
    }
  }
  check(outcome.created, await exists('/a'))
  check(outcome.written, (await content('/w')) === '1')
  check(outcome.versioned, (await content('/v')) === '1')
  check(outcome.deleted, !(await exists('/d')))
  const both = [await exists('/m1'), await exists('/m2')]
  expect(both[0]).toBe(both[1])
  check(outcome.multi, both[0]!)
  const { children } = await world.outcome(other.getChildren('/'))
  const queued = children.filter((name) => name.includes('q-'))
  // An ephemeral znode is removed with its session.
  const lives = 'value' in outcome.sequential && (generation === 1 || queued.length > 0)
  if (lives && 'value' in outcome.sequential) expect(queued).toEqual([outcome.sequential.value.path.slice(1)])
  else expect(queued.length).toBe(0)
}

/** A change from now on is delivered, or the end of the watch was. */
async function checkWatches(world: ManualWorld, other: Client, { once, lasting }: Outcome): Promise<void> {
  const collected = lasting === undefined ? [] : world.collect(lasting)
  await world.outcome(other.setData('/w', bytes('late')))
  await world.outcome(other.create('/a', { data: bytes('0') }).catch(() => other.delete('/a')))
  await world.settle()
  if (once !== undefined)
    await world.outcome(once.fired.catch((error: unknown) => expect(error).toBeInstanceOf(ZooKeeperError)))
  if (lasting !== undefined) {
    expect(
      collected.some((event) => 'path' in event && event.path === '/w' && event.type === 'nodeDataChanged'),
    ).toBe(true)
  }
}

describe.each([
  ['toServer', false],
  ['toClient', false],
  ['toServer', true],
  ['toClient', true],
] as const)('a fault at every frame %s, batchReads: %s', (direction, batchReads) => {
  it.each(faults)('%s: every promise settles and every watch is accounted for', async (fault) => {
    const frames = await count(direction, batchReads)
    expect(frames).toBeGreaterThan(9)
    for (let at = 0; at < frames; at++) {
      try {
        await live(fault, direction, at, batchReads)
      } catch (error) {
        throw new Error(`${fault} at frame ${at} ${direction}: ${(error as Error).message}`, { cause: error })
      }
    }
  })
})
