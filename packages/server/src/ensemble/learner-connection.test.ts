import { Writer } from '@zabra/protocol'
import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { NO_CLUSTER } from '../core/quorum/index.ts'
import {
  decodeSnapshotInfo,
  packetName,
  PacketSplitter,
  PacketType,
  writePacket,
  type SyncPlan,
} from '../core/zab/index.ts'
import type { RawTxn } from '../persistence/index.ts'
import type { SnapshotSource } from '../database/index.ts'
import { ForwardedBytes } from './forwarded-bytes.ts'
import { learnerOn } from './testing/learner.ts'

async function fixture({ isNamed = true } = {}) {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const received: string[] = []
  const data: (Uint8Array | null)[] = []
  const lost: string[] = []
  let peer!: Pick<Connection, 'pause' | 'resume' | 'write'>
  let rawBytes = 0
  const splitter = new PacketSplitter({
    maxData: 1 << 20,
    packet: (type, zxid, bytes) => {
      received.push(`${packetName(type)} ${zxid}`)
      data.push(bytes && bytes.slice())
    },
    raw: (bytes) => {
      rawBytes += bytes.length
      return -1
    },
  })
  await network.listen({ port: 1 }, (connection) => {
    peer = connection
    connection.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
  })
  const connection = await network.connect({ host: 'x', port: 1 })
  const learner = learnerOn(connection, clock, { isNamed, lost: (reason) => lost.push(reason) })
  return { clock, learner, received, data, lost, peer: () => peer, rawBytes: () => rawBytes }
}

const database = {
  readHistory: (): AsyncIterableIterator<RawTxn> => {
    throw new Error('no log here')
  },
  streamSnapshot: (): SnapshotSource => {
    throw new Error('no snapshot here')
  },
}

it('packets between NEWLEADER and UPTODATE are held until UPTODATE is sent, except pings', async () => {
  const { clock, learner, received } = await fixture()
  learner.send(PacketType.newLeader, 100)
  learner.send(PacketType.proposal, 101, new Uint8Array(3))
  learner.send(PacketType.commit, 101)
  learner.send(PacketType.ping, 101)
  learner.send(PacketType.proposal, 102, new Uint8Array(3))
  await clock.untilIdle()
  expect(received).toEqual(['newLeader 100', 'ping 101'])
  learner.send(PacketType.upToDate, -1)
  learner.send(PacketType.commit, 102)
  await clock.untilIdle()
  expect(received.slice(2)).toEqual([
    'upToDate -1',
    'proposal 101',
    'commit 101',
    'proposal 102',
    'commit 102',
  ])
})

it('a sync sends the history before packets that are sent meanwhile', async () => {
  const { clock, learner, received } = await fixture()
  const plan: SyncPlan = {
    kind: 'diff',
    zxid: 9,
    disk: { after: 5, upTo: 7, epochEnds: [] },
    entries: [8, 9].map((zxid) => ({ zxid, payload: new Uint8Array(2) })),
  } as SyncPlan
  const log = async function* (): AsyncGenerator<RawTxn> {
    for (const zxid of [6, 7]) yield { zxid, payload: new Uint8Array(1) }
  }
  void learner.sync(plan, { ...database, readHistory: () => log() as AsyncIterableIterator<RawTxn> })
  learner.send(PacketType.proposal, 10, new Uint8Array(1))
  learner.send(PacketType.newLeader, 100)
  await clock.untilIdle()
  expect(received).toEqual([
    'diff 9',
    ...[6, 7, 8, 9].flatMap((zxid) => [`proposal ${zxid}`, `commit ${zxid}`]),
    'proposal 10',
    'newLeader 100',
  ])
})

it('a snapshot is sent no faster than the learner reads it, and no packet is sent within it', async () => {
  const { clock, learner, received, peer, rawBytes } = await fixture()
  let made = 0
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    for (; made < 20; made++) yield new Uint8Array(64 * 1024)
  }
  peer().pause()
  void learner.sync(
    { kind: 'snap', reason: 'test', entries: [{ zxid: 8, payload: new Uint8Array(1) }] },
    {
      ...database,
      streamSnapshot: () => ({ zxid: 7, nodes: 4, chunks: chunks() as AsyncIterableIterator<Uint8Array> }),
    },
  )
  learner.send(PacketType.newLeader, 100)
  await clock.untilIdle()
  expect(made).toBeLessThan(3)
  peer().resume()
  await clock.untilIdle()
  expect(made).toBe(20)
  expect(received).toEqual(['snap 7'])
  expect(rawBytes()).toBeGreaterThan(20 * 64 * 1024)
})

it('a SNAP packet says how many nodes follow, to a learner of Zabra alone', async () => {
  for (const said of [undefined, { level: 1, sharesSecret: false, hasData: false, cluster: NO_CLUSTER }]) {
    const { clock, learner, data } = await fixture()
    learner.extension = said
    async function* chunks(): AsyncGenerator<Uint8Array> {}
    const streamSnapshot = (): SnapshotSource => ({
      zxid: 7,
      nodes: 4711,
      chunks: chunks() as AsyncIterableIterator<Uint8Array>,
    })
    void learner.sync({ kind: 'snap', reason: 'test', entries: [] }, { ...database, streamSnapshot })
    await clock.untilIdle()
    expect(data.map((bytes) => bytes && decodeSnapshotInfo(bytes))).toEqual([
      said === undefined ? null : 4711,
    ])
  }
})

it('the connection fails once when too many bytes are queued for a learner that is not synced', async () => {
  const { clock, learner, received, lost } = await fixture()
  learner.send(PacketType.newLeader, 100)
  const data = new Uint8Array(1 << 20)
  for (let zxid = 101; zxid <= 228; zxid++) learner.send(PacketType.proposal, zxid, data)
  expect(lost).toEqual([expect.stringMatching(/^\d+ bytes are queued until it is synced$/)])
  learner.send(PacketType.proposal, 229, data)
  learner.send(PacketType.upToDate, -1)
  await clock.untilIdle()
  expect([learner.isOpen, lost.length, received]).toEqual([false, 1, []])
})

it('a learner may send long packets once it is up to date, and no such ones before', async () => {
  for (const isUpToDate of [false, true]) {
    const { clock, learner, lost, peer } = await fixture()
    if (isUpToDate) learner.send(PacketType.upToDate, -1)
    const writer = new Writer()
    writePacket(writer, PacketType.ping, 0, new Uint8Array(12 * 10_000))
    peer().write(writer.take())
    await clock.untilIdle()
    expect(lost).toEqual(isUpToDate ? [] : [expect.stringContaining('Expected a length from -1 to 65536')])
  }
})

it.each([
  [true, 400_000, []],
  [false, 400_000, [expect.stringContaining('Expected a length from -1 to')]],
  [false, 100_000, []],
])(
  'a learner that a configuration names (%s) may report %i sessions at once',
  async (isNamed, sessions, expected) => {
    const { clock, learner, lost, peer } = await fixture({ isNamed })
    learner.send(PacketType.upToDate, -1)
    const writer = new Writer()
    writePacket(writer, PacketType.ping, 0, new Uint8Array(12 * sessions))
    peer().write(writer.take())
    await clock.untilIdle()
    expect(lost).toEqual(expected)
  },
)

it('a learner is held up until its requests are finished, or its connection is lost', async () => {
  for (const isLost of [false, true]) {
    const { learner } = await fixture()
    learner.forwarded = new ForwardedBytes({ maxBytes: 1, requestBytes: 1 })
    let finish = (): void => {}
    learner.forwarded.notePoint((done) => (finish = done))
    learner.pauseUntilFinished()
    expect([learner.isHeldUp, learner.isPaused]).toEqual([true, true])
    // The requests of a lost learner may be dropped, so that they never finish.
    if (isLost) learner.fail('a test ends it')
    else finish()
    expect(learner.isHeldUp).toBe(false)
  }
})
