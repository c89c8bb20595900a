import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { PacketSplitter, PacketType, PROTOCOL_VERSION, writePacket } from '../core/zab/index.ts'
import type { RawClient } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

async function answers(ensemble: Ensemble, client: RawClient, count: number): Promise<string[]> {
  await ensemble.until(`${count} frames`, () => client.frames.length >= count || client.closed)
  return client.takeReceived()
}

const looks = (ensemble: Ensemble, id: number, from = 0): number[] =>
  ensemble.lines
    .slice(from)
    .filter((line) => line.includes(` ${id} info Looking for a leader`))
    .map((line) => Number.parseInt(line, 10))

const everybodyServes = (ensemble: Ensemble): Promise<void> =>
  ensemble.until('everybody serves', () => ensemble.running.every(({ serving }) => serving))

it('stays in the role that it has found while it stood back', async () => {
  const ensemble = await Ensemble.start(3)
  const from = ensemble.lines.length
  expect(ensemble.server(3).yieldLeadership()).toBe(true)
  await ensemble.until('another leader', () => ensemble.leader === 2)
  await everybodyServes(ensemble)
  const client = await ensemble.client(3, { timeout: 40_000 })
  await ensemble.advance(15_000)
  expect([ensemble.server(3).role, client.closed, looks(ensemble, 3, from)]).toEqual(['following', false, []])
})

it('stands for election again when those for whom it stood back cannot lead', async () => {
  const ensemble = await Ensemble.start(3)
  expect(ensemble.server(3).yieldLeadership()).toBe(true)
  await ensemble.until('the end of the role', () => ensemble.server(3).role === 'looking')
  await ensemble.member(2).crash()
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
  await everybodyServes(ensemble)
})

it('gives others as history what it has logged for a leader that is gone, whoever else had it', async () => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(3)
  client.create(1, '/first')
  expect(await answers(ensemble, client, 1)).toEqual(['1:0'])
  const never = new Promise<void>(() => {})
  for (const id of [1, 3]) ensemble.member(id).disk.beforeWrite = () => never
  client.create(2, '/second')
  await ensemble.advance(500)
  for (const id of [1, 3]) {
    await ensemble.member(id).crash()
    ensemble.member(id).disk.beforeWrite = undefined
  }
  expect(client.takeReceived()).toEqual([])
  await ensemble.member(1).start()
  await ensemble.until('a leader', () => ensemble.leader === 2)
  await everybodyServes(ensemble)
  for (const id of [1, 2]) {
    const reader = await ensemble.client(id)
    reader.read(1, OpCode.exists, '/second')
    expect([id, await answers(ensemble, reader, 1)]).toEqual([id, ['1:0']])
  }
})

it('does not come to the next leader at once with all other observers of one that is gone', async () => {
  const observers = [4, 5, 6, 7, 8]
  const ensemble = await Ensemble.start(8, { observers, observerElectionDelayMs: 20_000 })
  const from = ensemble.lines.length
  const begun = ensemble.clock.monotonic()
  await ensemble.member(3).crash()
  await ensemble.until('a new leader', () => ensemble.leader === 2)
  await ensemble.advance(25_000)
  await everybodyServes(ensemble)
  const waits = observers.map((id) => looks(ensemble, id, from)[0]! - begun)
  expect(Math.max(...waits) - Math.min(...waits)).toBeGreaterThan(5000)
  expect(new Set(waits).size).toBe(observers.length)
})

it('keeps nothing of a start that a file of it has ended', async () => {
  const ensemble = new Ensemble(3)
  const member = ensemble.member(1)
  await member.disk.makeFolder('/data')
  member.disk.putFile('/data/zoo.cfg.dynamic.5', new TextEncoder().encode('server.1=here'))
  await expect(member.start()).rejects.toThrow('Correct the file, or remove it')
  expect(member.disk.paths().filter((path) => path.includes('lock'))).toEqual([])
})

it('lets go of its clients and of the other members at once when its disk fails', async () => {
  const ensemble = await Ensemble.start(3)
  const [client, other] = [await ensemble.client(3), await ensemble.client(1)]
  ensemble.member(3).disk.injectFault = (call) => (call === 'write' ? { code: 'EIO' } : undefined)
  other.create(1, '/a')
  await ensemble.until('the end of 3', () => ensemble.member(3).failure !== undefined)
  await ensemble.advance(50)
  expect(client.closed).toBe(true)
  await ensemble.until('a new leader', () => ensemble.leader === 2, 2000)
  await expect(ensemble.network.connect({ host: 'x', port: 4003 })).rejects.toThrow('ECONNREFUSED')
})

it('stops in the middle of a snapshot of which nothing more comes', async () => {
  const ensemble = new Ensemble(3)
  let isSent = false
  await ensemble.network.listen({ port: 9 }, (wire) => {
    const say = (type: number, zxid: number, data: Uint8Array | null): void => {
      const writer = new Writer(64)
      writePacket(writer, type, zxid, data)
      wire.write(writer.take())
    }
    const version = new Uint8Array(4)
    new DataView(version.buffer).setInt32(0, PROTOCOL_VERSION)
    const splitter = new PacketSplitter({
      maxData: 1024,
      packet: (type) => {
        if (type === PacketType.followerInfo) say(PacketType.leaderInfo, makeZxid(1, 0), version)
        if (type !== PacketType.ackEpoch) return
        // The magic number of a snapshot, and no more.
        say(PacketType.snap, makeZxid(1, 7), null)
        wire.write(new TextEncoder().encode('ZKSN'))
        isSent = true
      },
    })
    wire.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
  })
  ensemble.detour = (id, port) => (id === 1 && port === 2003 ? 9 : port)
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.until('the snapshot', () => isSent)
  await ensemble.advance(100)
  let isClosed = false
  void ensemble
    .server(1)
    .close()
    .then(() => (isClosed = true))
  await ensemble.until('the end', () => isClosed, 2000)
})

it('hands over only when what was asked before has its answer, though it is to stop', async () => {
  const ensemble = await Ensemble.start(3)
  const client = await ensemble.client(3)
  const { clock } = ensemble
  const slowly = (): Promise<void> => new Promise((done) => void clock.after(300, 'slow disk', done))
  for (const id of [1, 2]) ensemble.member(id).disk.beforeWrite = slowly
  client.create(1, '/a')
  await ensemble.advance(50)
  expect(client.takeReceived()).toEqual([])
  await ensemble.member(3).stop()
  expect(client.takeReceived()).toEqual(['1:0'])
  await ensemble.until('another leader', () => ensemble.leader === 2)
})
