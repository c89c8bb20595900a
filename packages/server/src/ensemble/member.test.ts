import { makeZxid, OpCode, Writer } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { PacketSplitter, PacketType, PROTOCOL_VERSION, writePacket } from '../core/zab/index.ts'
import { Ensemble } from './testing/ensemble.ts'

const electionStarts = (ensemble: Ensemble, id: number, from = 0): number[] =>
  ensemble.lines
    .slice(from)
    .filter((line) => line.includes(` ${id} info Looking for a leader`))
    .map((line) => Number.parseInt(line, 10))

it('a leader that has yielded leadership keeps the role that it enters under its successor', async () => {
  const ensemble = await Ensemble.start(3)
  const from = ensemble.lines.length
  expect(ensemble.server(3).yieldLeadership()).toBe(true)
  await ensemble.until('another leader', () => ensemble.leader === 2)
  await ensemble.allServe()
  const client = await ensemble.client(3, { timeout: 40_000 })
  await ensemble.advance(15_000)
  expect(ensemble.server(3).role).toBe('following')
  expect(client.closed).toBe(false)
  expect(electionStarts(ensemble, 3, from)).toEqual([])
})

it('a leader that has yielded leadership is a candidate again when the others cannot elect a leader', async () => {
  const ensemble = await Ensemble.start(3)
  expect(ensemble.server(3).yieldLeadership()).toBe(true)
  await ensemble.until('the end of the role', () => ensemble.server(3).role === 'looking')
  await ensemble.member(2).crash()
  await ensemble.until('a leader', () => ensemble.leader !== undefined)
  await ensemble.allServe()
})

it('a member passes on, as history, a transaction that it logged for a lost leader before it knew that it was committed', async () => {
  const { ensemble, client } = await Ensemble.withClient(3)
  expect(await ensemble.create(client, '/first')).toBe('1:0')
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
  await ensemble.allServe()
  for (const id of [1, 2]) {
    const reader = await ensemble.client(id)
    reader.read(1, OpCode.exists, '/second')
    expect([id, await ensemble.receive(reader, 1)]).toEqual([id, ['1:0']])
  }
})

it('the observers of a lost leader reconnect at different times', async () => {
  const observers = [4, 5, 6, 7, 8]
  const ensemble = await Ensemble.start(8, { observers, observerElectionDelayMs: 20_000 })
  const from = ensemble.lines.length
  const crashedAt = ensemble.clock.monotonic()
  await ensemble.member(3).crash()
  await ensemble.until('a new leader', () => ensemble.leader === 2)
  await ensemble.advance(25_000)
  await ensemble.allServe()
  const delays = observers.map((id) => electionStarts(ensemble, id, from)[0]! - crashedAt)
  expect(Math.max(...delays) - Math.min(...delays)).toBeGreaterThan(5000)
  expect(new Set(delays).size).toBe(observers.length)
})

it('a member that cannot read a configuration file unlocks its folder', async () => {
  const ensemble = new Ensemble(3)
  const member = ensemble.member(1)
  await member.disk.makeFolder('/data')
  member.disk.putFile('/data/zoo.cfg.dynamic.5', new TextEncoder().encode('server.1=here'))
  await expect(member.start()).rejects.toThrow('Correct the file, or remove it')
  expect(member.disk.paths().filter((path) => path.includes('lock'))).toEqual([])
})

it('a leader whose disk fails closes its clients and its connections to members at once', async () => {
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

it('a learner can be closed while it waits for the rest of a snapshot', async () => {
  const ensemble = new Ensemble(3)
  let isSent = false
  await ensemble.network.listen({ port: 9 }, (connection) => {
    const send = (type: number, zxid: number, data: Uint8Array | null): void => {
      const writer = new Writer(64)
      writePacket(writer, type, zxid, data)
      connection.write(writer.take())
    }
    const version = new Uint8Array(4)
    new DataView(version.buffer).setInt32(0, PROTOCOL_VERSION)
    const splitter = new PacketSplitter({
      maxData: 1024,
      packet: (type) => {
        if (type === PacketType.followerInfo) send(PacketType.leaderInfo, makeZxid(1, 0), version)
        if (type !== PacketType.ackEpoch) return
        // The magic number of a snapshot, and nothing after it.
        send(PacketType.snap, makeZxid(1, 7), null)
        connection.write(new TextEncoder().encode('ZKSN'))
        isSent = true
      },
    })
    connection.setHandler({ data: (chunk) => splitter.push(chunk), drain() {}, closed() {} })
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

it('a leader that is closed answers accepted requests before it hands leadership over', async () => {
  const { ensemble, client } = await Ensemble.withClient(3)
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
