import {
  CreateMode,
  OPEN_ACL_UNSAFE,
  OpCode,
  writeMultiHeader,
  writeCreateRequest,
  type Writer,
} from '@zabra/protocol'
import { holding, load } from '../load.ts'
import { fourLetterWord, type Peer } from '../peers.ts'
import { RawClient } from '../raw-client.ts'
import { on, plant, scaled, type Case, type Setting } from './case.ts'

const PROBE_SECONDS = 6
const NODES = 1_000_000
const MANY = 100_000
const SESSIONS = 10_000
/** Just below the default of jute.maxbuffer. */
const REQUEST_BYTES = 1_040_000
const nothing = new Uint8Array(0)

/** The longest hold of our own event loop since `srst`; undefined for who does not tell. */
async function heldFor(peer: Peer): Promise<number | undefined> {
  const text = await fourLetterWord(peer.ports[0]!, 'mntr')
  const told = /zk_max_event_loop_hold_ms\s+([\d.]+)/.exec(text)?.[1]
  return told === undefined ? undefined : Number(told)
}

/** Notes what a disturbance does to a reader, and how long our event loop is held meanwhile. */
async function during(
  { note }: Setting,
  peer: Peer,
  what: string,
  disturbance: () => Promise<unknown>,
): Promise<void> {
  const args = ['-m', 'get', '-c', '1', '-d', '64', '-r', '1000', '-s', String(PROBE_SECONDS), '-k', '10']
  const probe = load(peer.servers, ...args)
  // The first quarter is its warm-up.
  await new Promise((resolve) => setTimeout(resolve, PROBE_SECONDS * 400))
  await fourLetterWord(peer.ports[0]!, 'srst')
  await disturbance()
  const held = await heldFor(peer)
  if (held !== undefined) note({ name: `event loop held: ${what}`, unit: 'ms', better: 'lower' }, held)
  const [told] = await probe
  note({ name: `longest wait: ${what}`, unit: 'ms', better: 'lower' }, told!.max / 1000)
}

const create =
  (path: (index: number) => string, flags: number = CreateMode.PERSISTENT) =>
  (writer: Writer, index: number): void =>
    writeCreateRequest(writer, { path: path(index), data: nothing, acl: OPEN_ACL_UNSAFE, flags })

const numbered = (folder: string) => (index: number) => `${folder}/member-${String(index).padStart(10, '0')}`

/** A multi of as many parts as a request may hold. */
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

/** As many watches as one request may set, on nodes that are not there. */
const manyWatches =
  (count: number) =>
  (writer: Writer): void => {
    writer.longNumber(Number.MAX_SAFE_INTEGER)
    writer.int(0)
    writer.int(count)
    for (let i = 0; i < count; i++) writer.string(`/w${i}`)
    writer.int(0)
  }

const path = (text: string, watch?: boolean) => (writer: Writer) => {
  writer.string(text)
  if (watch !== undefined) writer.bool(watch)
}

const holds: Case = {
  name: 'holds',
  about: 'how long the event loop is held, and a reader waits, while the server does something large',
  run: async (setting) => {
    const many = scaled(setting, MANY)
    const nodes = scaled(setting, NODES)
    const sessions = scaled(setting, SESSIONS)
    const shown = (count: number): string => count.toLocaleString('en')
    await on(setting, 1, async (peer) => {
      const port = peer.ports[0]!
      const client = await RawClient.open(port)
      const test = (what: string, disturbance: () => Promise<unknown>): Promise<void> =>
        during(setting, peer, what, disturbance)
      await test('nothing', async () => {})
      for (const folder of ['/e', '/m', '/p'])
        await client.ask(OpCode.create, (w) => create(() => folder)(w, 0))
      await client.askMany(many, OpCode.create, create(numbered('/e'), CreateMode.EPHEMERAL))
      await test(`children of a node that has ${shown(many)}`, () =>
        client.ask(OpCode.getChildren2, path('/e', false)))
      await test(`${shown(many)} own ephemerals`, () => client.ask(OpCode.getEphemerals, path('/')))
      await test(`dump with ${shown(many)} ephemerals`, () => fourLetterWord(port, 'dump'))
      await test(`end of a session with ${shown(many)} ephemerals`, () => client.close())
      const second = await RawClient.open(port)
      await test('the largest multi', () => second.ask(OpCode.multi, largestMulti))
      const watches = Math.min(80_000, many)
      await test(`${shown(watches)} watches set again`, () =>
        second.ask(OpCode.setWatches, manyWatches(watches)))
      for (const word of ['wchp', 'wchc'])
        await test(`${word} with ${shown(watches)} watches`, () => fourLetterWord(port, word))
      await test(`a client with ${shown(watches)} watches gone`, async () => {
        second.vanish()
        await new Promise((resolve) => setTimeout(resolve, 500))
      })
      await held(peer, sessions, async () => {
        await test(`dump and cons with ${shown(sessions)} sessions`, async () => {
          await fourLetterWord(port, 'dump')
          await fourLetterWord(port, 'cons')
        })
      })
      const third = await RawClient.open(port)
      await test(`${shown(nodes)} znodes created, with snapshots`, () =>
        third.askMany(nodes, OpCode.create, create(numbered('/p'))))
      await test(`the number below a node: ${shown(nodes)}`, () =>
        third.ask(OpCode.getAllChildrenNumber, path('/p')))
      const quota = [
        '/zookeeper/quota/p',
        '/zookeeper/quota/p/zookeeper_limits',
        '/zookeeper/quota/p/zookeeper_stats',
      ]
      await test(`a quota on ${shown(nodes)} znodes`, async () => {
        for (const one of quota)
          await third.ask(OpCode.create, (w) => {
            const data = new TextEncoder().encode('count=-1,bytes=-1')
            writeCreateRequest(w, { path: one, data, acl: OPEN_ACL_UNSAFE, flags: CreateMode.PERSISTENT })
          })
      })
      await third.close()
    })
  },
}

/** Holds sessions until `body` is through. */
const held = (peer: Peer, sessions: number, body: () => Promise<void>): Promise<void> =>
  holding(peer.servers, { sessions }, { sessionsOpen: body, watchesSet() {} })

const storm: Case = {
  name: 'expiry-storm',
  about: 'how long the event loop is held, and a reader waits, while 10,000 sessions expire at once',
  run: async (setting) => {
    const sessions = scaled(setting, SESSIONS)
    await on(setting, 1, async (peer) => {
      // Those who are gone without a word expire together, within their shortest time.
      const clients: RawClient[] = []
      for (let i = 0; i < sessions; i += 200)
        clients.push(
          ...(await Promise.all(
            Array.from({ length: Math.min(200, sessions - i) }, () => RawClient.open(peer.ports[0]!, 5000)),
          )),
        )
      await during(setting, peer, `${sessions.toLocaleString('en')} sessions gone and expired`, async () => {
        for (const client of clients) client.vanish()
        await new Promise((resolve) => setTimeout(resolve, 9000))
      })
    })
  },
}

const SNAP_CLIENTS = ['-c', '10', '-d', '1', '-r', '2000']

const snapshotToLearner: Case = {
  name: 'snap-3',
  about: 'p99 of ten clients that read and write while a member with an empty folder gets a million znodes',
  run: async (setting) => {
    const { note } = setting
    const nodes = scaled(setting, NODES)
    const peer = await setting.start({ members: 3, late: true })
    try {
      const leader = peer.servers.split(',')[0]!
      await plant(leader, nodes, 100)
      const mixed = (seconds: number): ReturnType<typeof load> =>
        load(leader, '-m', 'mixed', ...SNAP_CLIENTS, '-s', String(seconds))
      const quiet = await mixed(5)
      const name = (what: string): string => `p99 of ${what}, ${nodes.toLocaleString('en')} znodes`
      for (const one of quiet)
        note({ name: name(`${one.name} before`), unit: 'ms', better: 'lower' }, one.p99 / 1000)
      await fourLetterWord(peer.ports[0]!, 'srst')
      const busy = mixed(Math.max(8, 20 * setting.choices.scale))
      await new Promise((resolve) => setTimeout(resolve, 2500))
      const joined = await peer.join()
      note(
        { name: `a member joins, ${nodes.toLocaleString('en')} znodes`, unit: 'ms', better: 'lower' },
        joined,
      )
      for (const one of await busy)
        note({ name: name(`${one.name} meanwhile`), unit: 'ms', better: 'lower' }, one.p99 / 1000)
      const held = await heldFor(peer)
      if (held !== undefined)
        note({ name: 'event loop of the leader held', unit: 'ms', better: 'lower' }, held)
    } finally {
      await peer.stop()
    }
  },
}

export const holdCases: readonly Case[] = [holds, storm, snapshotToLearner]
