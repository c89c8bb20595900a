import { ManualClock, MemoryNetwork } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { packetName, PacketSplitter, PacketType, type SyncPlan } from '../core/zab/index.ts'
import type { RawTxn } from '../persistence/index.ts'
import { defaults } from '../settings/index.ts'
import type { SnapshotSource } from '../database/index.ts'
import { LearnerConnection } from './learner-connection.ts'
import type { MemberContext } from './context.ts'

async function rig() {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const heard: string[] = []
  const lost: string[] = []
  let other!: { pause(): void; resume(): void }
  let raw = 0
  const splitter = new PacketSplitter({
    maxData: 1 << 20,
    packet: (type, zxid) => heard.push(`${packetName(type)} ${zxid}`),
    raw: (bytes) => {
      raw += bytes.length
      return -1
    },
  })
  await network.listen({ port: 1 }, (wire) => {
    other = wire
    wire.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
  })
  const context = {
    settings: defaults({ dataDir: '/d', clientPort: 0 }),
    platform: { clock },
  } as unknown as MemberContext
  const link = new LearnerConnection(1, 2, await network.connect({ host: 'x', port: 1 }), context, {
    received: (read) => read(),
    packet() {},
    progress() {},
    lost: (reason) => lost.push(reason),
  })
  return { clock, link, heard, lost, other: () => other, raw: () => raw }
}

const database = {
  readHistory: (): AsyncIterableIterator<RawTxn> => {
    throw new Error('no log here')
  },
  streamSnapshot: (): SnapshotSource => {
    throw new Error('no snapshot here')
  },
}

it('keeps what comes between NEWLEADER and UPTODATE until UPTODATE is sent, but for pings', async () => {
  const { clock, link, heard } = await rig()
  link.send(PacketType.newLeader, 100)
  link.send(PacketType.proposal, 101, new Uint8Array(3))
  link.send(PacketType.commit, 101)
  link.send(PacketType.ping, 101)
  link.send(PacketType.proposal, 102, new Uint8Array(3))
  await clock.untilIdle()
  expect(heard).toEqual(['newLeader 100', 'ping 101'])
  link.send(PacketType.upToDate, -1)
  link.send(PacketType.commit, 102)
  await clock.untilIdle()
  expect(heard.slice(2)).toEqual(['upToDate -1', 'proposal 101', 'commit 101', 'proposal 102', 'commit 102'])
})

it('sends history before everything that is sent meanwhile', async () => {
  const { clock, link, heard } = await rig()
  const plan: SyncPlan = {
    how: 'diff',
    zxid: 9,
    disk: { after: 5, upTo: 7, epochEnds: [] },
    entries: [8, 9].map((zxid) => ({ zxid, payload: new Uint8Array(2) })),
  } as SyncPlan
  const log = async function* (): AsyncGenerator<RawTxn> {
    for (const zxid of [6, 7]) yield { zxid, payload: new Uint8Array(1) }
  }
  void link.sync(plan, { ...database, readHistory: () => log() as AsyncIterableIterator<RawTxn> })
  link.send(PacketType.proposal, 10, new Uint8Array(1))
  link.send(PacketType.newLeader, 100)
  await clock.untilIdle()
  expect(heard).toEqual([
    'diff 9',
    ...[6, 7, 8, 9].flatMap((zxid) => [`proposal ${zxid}`, `commit ${zxid}`]),
    'proposal 10',
    'newLeader 100',
  ])
})

it('sends a snapshot no faster than it is taken, and nothing into it', async () => {
  const { clock, link, heard, other, raw } = await rig()
  let made = 0
  const chunks = async function* (): AsyncGenerator<Uint8Array> {
    for (; made < 20; made++) yield new Uint8Array(64 * 1024)
  }
  other().pause()
  void link.sync(
    { how: 'snap', reason: 'test', entries: [{ zxid: 8, payload: new Uint8Array(1) }] },
    {
      ...database,
      streamSnapshot: () => ({ zxid: 7, chunks: chunks() as AsyncIterableIterator<Uint8Array> }),
    },
  )
  link.send(PacketType.newLeader, 100)
  await clock.untilIdle()
  expect(made).toBeLessThan(3)
  other().resume()
  await clock.untilIdle()
  expect(made).toBe(20)
  expect(heard).toEqual(['snap 7'])
  expect(raw()).toBeGreaterThan(20 * 64 * 1024)
})

it('gives up a learner for which too much is kept before it has come into step, and says so once', async () => {
  const { clock, link, heard, lost } = await rig()
  link.send(PacketType.newLeader, 100)
  const data = new Uint8Array(1 << 20)
  for (let zxid = 101; zxid <= 228; zxid++) link.send(PacketType.proposal, zxid, data)
  expect(lost).toEqual([expect.stringMatching(/^\d+ bytes wait for it to come into step$/)])
  link.send(PacketType.proposal, 229, data)
  link.send(PacketType.upToDate, -1)
  await clock.untilIdle()
  expect([link.isOpen, lost.length, heard]).toEqual([false, 1, []])
})

it('counts what is kept for a learner as not taken yet', async () => {
  const { clock, link } = await rig()
  link.send(PacketType.newLeader, 100)
  link.send(PacketType.proposal, 101, new Uint8Array(5000))
  await clock.untilIdle()
  expect(link.unsentBytes).toBeGreaterThan(5000)
  link.send(PacketType.upToDate, -1)
  await clock.untilIdle()
  expect(link.unsentBytes).toBe(0)
})
