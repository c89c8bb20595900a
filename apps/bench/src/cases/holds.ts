import {
  CreateMode,
  OPEN_ACL_UNSAFE,
  OpCode,
  writeMultiHeader,
  writeCreateRequest,
  type Writer,
} from '@zabra/protocol'
import { busyFlags, longestTurn, turnsSince } from '../busy.ts'
import { holdSessions, load, percentileOf, type LoadResult } from '../load.ts'
import { fourLetterWord, type Peer } from '../peers.ts'
import type { RawClient } from '@zabra/testkit'
import { openSession } from '../open-session.ts'
import { withPeer, createNodes, scaled, withNodeFlags, type Case, type CaseContext } from './case.ts'

const PROBE_SECONDS = 6
const NODES = 1_000_000
const MANY = 100_000
const SESSIONS = 10_000
/** Just below the default of jute.maxbuffer. */
export const REQUEST_BYTES = 1_040_000
/** Wait after `srst`: the server resets its maxima at its next tick, and ticks are 10 ms apart. */
const SETTLED_MS = 50
export const noData = new Uint8Array(0)

/** Returns the longest event loop hold since `srst`; undefined for a peer without this metric. */
async function longestHold(peer: Peer): Promise<number | undefined> {
  const text = await fourLetterWord(peer.ports[0]!, 'mntr')
  const value = /zk_max_event_loop_hold_ms\s+([\d.]+)/.exec(text)?.[1]
  return value === undefined ? undefined : Number(value)
}

/**
 * Resets the server's maxima. Resolves to a function that records the longest event loop hold since then, by elapsed time and by
 * processor time of the thread.
 */
export async function watchHolds(
  { note }: CaseContext,
  peer: Peer,
  nameOf: (kind: 'held' | 'busy') => string,
): Promise<() => Promise<void>> {
  await fourLetterWord(peer.ports[0]!, 'srst')
  await wait(SETTLED_MS)
  const turns = turnsSince(peer.leaderFolder)
  return async () => {
    // The reply comes in a later turn of the event loop, after the last hold was recorded.
    await fourLetterWord(peer.ports[0]!, 'ruok')
    const since = turns()
    const busy = since && (longestTurn(since, 'busy')?.busy ?? 0)
    // The recorded turns show short holds too, of which the server's samples, 10 ms apart, miss parts.
    const held = since === undefined ? await longestHold(peer) : (longestTurn(since, 'held')?.held ?? 0)
    const maxima = { held, busy }
    for (const kind of ['held', 'busy'] as const) {
      const value = maxima[kind]
      if (value !== undefined) note({ name: nameOf(kind), unit: 'ms', better: 'lower' }, value)
    }
  }
}

/** Records the longest latency of a reader and the longest event loop hold during a disturbance. */
export async function measureDuring(
  context: CaseContext,
  peer: Peer,
  what: string,
  disturbance: () => Promise<unknown>,
): Promise<void> {
  const args = ['-m', 'get', '-c', '1', '-d', '64', '-r', '1000', '-s', String(PROBE_SECONDS), '-k', '10']
  const probe = load(peer.servers, ...args)
  // The first quarter of the probe is its warm-up.
  await wait(PROBE_SECONDS * 400)
  const noteHolds = await watchHolds(context, peer, (kind) => `event loop ${kind}: ${what}`)
  await disturbance()
  await noteHolds()
  const [result] = await probe
  context.note({ name: `longest wait: ${what}`, unit: 'ms', better: 'lower' }, result!.max / 1000)
}

export const create =
  (path: (index: number) => string, flags: number = CreateMode.PERSISTENT) =>
  (writer: Writer, index: number): void =>
    writeCreateRequest(writer, { path: path(index), data: noData, acl: OPEN_ACL_UNSAFE, flags })

export const numbered = (folder: string) => (index: number) =>
  `${folder}/member-${String(index).padStart(10, '0')}`

/** Writes a multi with as many operations as fit into one request. */
function largestMulti(writer: Writer): void {
  const before = writer.length
  const value = new Uint8Array(1)
  while (writer.length - before < REQUEST_BYTES) {
    writeMultiHeader(writer, { type: OpCode.setData, done: false, err: -1 })
    writer.string('/m')
    writer.buffer(value)
    writer.int(-1)
  }
  writeMultiHeader(writer, { type: -1, done: true, err: -1 })
}

/** Writes a setWatches with data watches on absent nodes. */
const manyWatches =
  (count: number) =>
  (writer: Writer): void => {
    writer.longNumber(Number.MAX_SAFE_INTEGER)
    writer.int(0)
    writer.int(count)
    for (let i = 0; i < count; i++) writer.string(`/w${i}`)
    writer.int(0)
  }

export const path = (text: string, watch?: boolean) => (writer: Writer) => {
  writer.string(text)
  if (watch !== undefined) writer.bool(watch)
}

const holds: Case = {
  name: 'holds',
  about: 'the longest event loop hold and reader latency during large operations of the server',
  run: async (context) => {
    const many = scaled(context, MANY)
    const nodes = scaled(context, NODES)
    const sessions = scaled(context, SESSIONS)
    const shown = (count: number): string => count.toLocaleString('en')
    await withPeer(withNodeFlags(context, busyFlags()), 1, async (peer) => {
      const port = peer.ports[0]!
      const client = await openSession(port)
      const test = (what: string, disturbance: () => Promise<unknown>): Promise<void> =>
        measureDuring(context, peer, what, disturbance)
      await test('nothing', async () => {})
      for (const folder of ['/e', '/m', '/p'])
        await client.request(OpCode.create, (w) => create(() => folder)(w, 0))
      await client.requestMany(many, OpCode.create, create(numbered('/e'), CreateMode.EPHEMERAL))
      await test(`children of a node that has ${shown(many)}`, () =>
        client.request(OpCode.getChildren2, path('/e', false)))
      await test(`${shown(many)} own ephemerals`, () => client.request(OpCode.getEphemerals, path('/')))
      await test(`dump with ${shown(many)} ephemerals`, () => fourLetterWord(port, 'dump'))
      await test(`end of a session with ${shown(many)} ephemerals`, () => client.close())
      const second = await openSession(port)
      await test('the largest multi', () => second.request(OpCode.multi, largestMulti))
      const watches = Math.min(80_000, many)
      await test(`${shown(watches)} watches set again`, () =>
        second.request(OpCode.setWatches, manyWatches(watches)))
      for (const word of ['wchp', 'wchc'])
        await test(`${word} with ${shown(watches)} watches`, () => fourLetterWord(port, word))
      await test(`a client with ${shown(watches)} watches gone`, async () => {
        second.destroy()
        await wait(500)
      })
      await whileHolding(peer, sessions, async () => {
        await test(`dump and cons with ${shown(sessions)} sessions`, async () => {
          await fourLetterWord(port, 'dump')
          await fourLetterWord(port, 'cons')
        })
      })
      const third = await openSession(port)
      await test(`${shown(nodes)} znodes created, with snapshots`, () =>
        third.requestMany(nodes, OpCode.create, create(numbered('/p'))))
      await test(`the number below a node: ${shown(nodes)}`, () =>
        third.request(OpCode.getAllChildrenNumber, path('/p')))
      const quota = [
        '/zookeeper/quota/p',
        '/zookeeper/quota/p/zookeeper_limits',
        '/zookeeper/quota/p/zookeeper_stats',
      ]
      await test(`a quota on ${shown(nodes)} znodes`, async () => {
        for (const one of quota)
          await third.request(OpCode.create, (w) => {
            const data = new TextEncoder().encode('count=-1,bytes=-1')
            writeCreateRequest(w, { path: one, data, acl: OPEN_ACL_UNSAFE, flags: CreateMode.PERSISTENT })
          })
      })
      await third.close()
    })
  },
}

/** Runs `body` while idle sessions are open. */
const whileHolding = (peer: Peer, sessions: number, body: () => Promise<void>): Promise<void> =>
  holdSessions(peer.servers, { sessions }, { sessionsOpen: body, watchesSet() {} })

const storm: Case = {
  name: 'expiry-storm',
  about:
    'the longest event loop hold and reader latency while 10,000 sessions expire, and while 10,000 connections close',
  run: async (context) => {
    const sessions = scaled(context, SESSIONS)
    const shown = sessions.toLocaleString('en')
    await withPeer(withNodeFlags(context, busyFlags()), 1, async (peer) => {
      const clients = await openSilentSessions(peer, sessions, 5000)
      await measureDuring(context, peer, `${shown} sessions expired`, () => wait(9000))
      for (const client of clients) client.destroy()
    })
    await withPeer(withNodeFlags(context, busyFlags()), 1, async (peer) => {
      const clients = await openSilentSessions(peer, sessions, 30_000)
      await measureDuring(context, peer, `${shown} clients gone at once`, async () => {
        for (const client of clients) client.destroy()
        await wait(3000)
      })
    })
  },
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Opens sessions that never ping. */
async function openSilentSessions(peer: Peer, sessions: number, timeOut: number): Promise<RawClient[]> {
  const clients: RawClient[] = []
  for (let i = 0; i < sessions; i += 200) {
    const together = Array.from({ length: Math.min(200, sessions - i) }, () =>
      openSession(peer.ports[0]!, timeOut),
    )
    clients.push(...(await Promise.all(together)))
  }
  return clients
}

/** Rates that leave four processors idle capacity, so that latency is not caused by the load itself. */
const GETS = ['-m', 'get', '-c', '50', '-d', '8', '-r', '1800']
const SETS = ['-m', 'set', '-c', '50', '-d', '8', '-r', '200']

/** Limit of the p99 latency while a member joins. */
const WAIT_MS = 20

/** Runs reads and writes at their rates, counted separately because only writes wait for the disk. */
async function readsAndWrites(servers: string, seconds: number): Promise<LoadResult[]> {
  const both = [GETS, SETS].map((args) => load(servers, ...args, '-s', String(seconds)))
  return (await Promise.all(both)).flat()
}

/** Returns the leader's longest fsync since `srst`; undefined for Apache, which never resets it. */
async function longestSync(peer: Peer): Promise<number | undefined> {
  const text = await fourLetterWord(peer.ports[0]!, 'mntr')
  if (!text.includes('zk_max_event_loop_hold_ms')) return undefined
  return Number(/zk_max_fsynctime\s+([\d.]+)/.exec(text)?.[1])
}

const snapshotToLearner: Case = {
  name: 'snap-3',
  about:
    'p99 of 1,800 reads and 200 writes per second of 100 clients while a new member receives a snapshot of a million znodes',
  run: async (context) => {
    const { note } = context
    const nodes = scaled(context, NODES)
    const size = `${nodes.toLocaleString('en')} znodes`
    const lower = (name: string, value: number | undefined): void =>
      value === undefined ? undefined : note({ name, unit: 'ms', better: 'lower' }, value)
    const peer = await withNodeFlags(context, busyFlags()).start({ members: 3, withoutLast: true })
    try {
      const leader = peer.servers.split(',')[0]!
      await createNodes(leader, nodes, 100)
      for (const { name, p99 } of await readsAndWrites(leader, 5))
        lower(`p99 of ${name} before, ${size}`, p99 / 1000)
      // About as long as the member takes to join, so that the figures cover that time only.
      const seconds = Math.max(3, 8 * context.options.scale)
      const busy = readsAndWrites(leader, seconds)
      await new Promise((resolve) => setTimeout(resolve, seconds * 250 + 500))
      const noteHolds = await watchHolds(context, peer, (kind) => `event loop of the leader ${kind}`)
      const [began, waited] = [performance.now(), peer.leaderRunQueueMs()]
      lower(`a member joins, ${size}`, await peer.join())
      const loads = await busy
      const starved = (peer.leaderRunQueueMs() - waited) / (performance.now() - began)
      note(
        { name: 'leader ready, and without a processor', unit: 'ms a second', better: 'lower' },
        starved * 1000,
      )
      for (const { name, p99 } of loads) lower(`p99 of ${name} meanwhile, ${size}`, p99 / 1000)
      note(
        { name: `p99 of all requests meanwhile, ${size}`, unit: 'ms', better: 'lower', limit: WAIT_MS },
        percentileOf(loads, 0.99) / 1000,
      )
      await noteHolds()
      lower('longest durable write of the leader', await longestSync(peer))
    } finally {
      await peer.stop()
    }
  },
}

export const holdCases: readonly Case[] = [holds, storm, snapshotToLearner]
