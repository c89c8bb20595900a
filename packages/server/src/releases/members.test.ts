import { FrameSplitter, OpCode } from '@zabra/protocol'
import { MemoryDisk, silentLogger, type Connection, type ConnectionHandler } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import {
  fromHex,
  plain,
  putFiles,
  readFixture,
  releases,
  toHex,
  writeFixture,
  writtenRelease,
} from '@zabra/testkit/release-fixtures'
import { describe, expect, it } from 'vitest'
import { decodeNotification, notificationBytes } from '../core/election/index.ts'
import { formatClusterId, hasClusterId, type ClusterId } from '../core/quorum/index.ts'
import {
  decodeFeatureReport,
  decodeFeatureState,
  decodeLeaderReportPacket,
  decodeLearnerReportPacket,
  decodeLearnerInfo,
  decodeMemberExtension,
  decodeStopPermitAnswer,
  decodeStopPermitRequest,
  LEADER_INFO_BYTES,
  LEARNER_INFO_BYTES,
  packetName,
  PacketSplitter,
  PacketType,
} from '../core/zab/index.ts'
import { HelloReader } from '../ensemble/election-hello.ts'
import { Ensemble } from '../ensemble/testing/ensemble.ts'
import { readClusterId, readFeatureState } from '../persistence/index.ts'
import { readDatabase, readMemberState } from '../persistence/tools/index.ts'

const location = { dataDir: '/data', dataLogDir: '/data' }
const tools = { compression: nodeCompression, logger: silentLogger }

/** What one side of a connection has sent. */
interface Stream {
  readonly wire: 'quorum' | 'election'
  /** Whether it is the side that has opened the connection. */
  readonly opened: boolean
  readonly hex: string
  /** What it says. */
  readonly read: unknown
}

interface Fixture {
  /** The data folder of a member, by paths. */
  readonly files: Readonly<Record<string, string>>
  readonly data: unknown
  readonly streams: readonly Stream[]
}

/** Returns the id of an ensemble as the fixtures have it; 0.1 calls the absence of one `original`. */
const textOf = (id: ClusterId): string => (hasClusterId(id) ? formatClusterId(id) : 'original')

function readStream({ wire, opened, hex }: Omit<Stream, 'read'>): unknown {
  return plain(
    wire === 'quorum'
      ? readPackets(fromHex(hex), opened ? 'learner' : 'leader')
      : readVotes(fromHex(hex), opened),
  )
}

function readPackets(bytes: Uint8Array, sender: 'learner' | 'leader'): unknown[] {
  const packets: unknown[] = []
  const extensionOf = (data: Uint8Array | null, offset: number): object => {
    const said = decodeMemberExtension(data, offset)
    return said === undefined ? {} : { ...said, cluster: textOf(said.cluster) }
  }
  const splitter = new PacketSplitter({
    maxData: 1 << 20,
    packet(type, zxid, data, auth) {
      const packet = { type: packetName(type), zxid, auth }
      if (type === PacketType.followerInfo || type === PacketType.observerInfo)
        packets.push({ ...packet, ...decodeLearnerInfo(data), ...extensionOf(data, LEARNER_INFO_BYTES) })
      else if (type === PacketType.leaderInfo)
        packets.push({ ...packet, ...extensionOf(data, LEADER_INFO_BYTES) })
      else if (type === PacketType.stopPermit)
        packets.push({
          ...packet,
          ...(data!.length === 12 ? decodeStopPermitRequest(data) : decodeStopPermitAnswer(data)),
        })
      else if (type === PacketType.featureLevel)
        packets.push({
          ...packet,
          levels: data!.length === 4 ? decodeFeatureState(data) : decodeFeatureReport(data),
        })
      else if (type === PacketType.memberReport)
        packets.push({
          ...packet,
          ...(sender === 'learner' ? decodeLearnerReportPacket(data) : decodeLeaderReportPacket(data)),
        })
      else packets.push({ ...packet, data })
    },
  })
  splitter.push(bytes)
  return packets
}

function readVotes(bytes: Uint8Array, opened: boolean): unknown[] {
  const messages: unknown[] = []
  let rest = bytes
  if (opened) {
    const { hello, rest: after } = new HelloReader().push(bytes)!
    messages.push(hello)
    rest = after
  }
  const splitter = new FrameSplitter({
    minLength: 1,
    maxLength: 1 << 20,
    frame(all, start, end) {
      const payload = all.subarray(start, end)
      const said = decodeMemberExtension(payload, notificationBytes(payload))
      messages.push({
        ...decodeNotification(payload),
        ...(said === undefined ? {} : { ...said, cluster: textOf(said.cluster) }),
      })
    },
  })
  splitter.push(rest)
  return messages
}

async function readFiles(files: Fixture['files']): Promise<unknown> {
  const disk = new MemoryDisk()
  putFiles(disk, files)
  const database = await readDatabase(disk, location, nodeCompression, silentLogger)
  const state = await readMemberState(location, { disk, ...tools })
  return plain({
    snapshot: database.snapshot,
    replayed: database.replayed,
    lastZxid: database.lastZxid,
    nodes: [...database.nodes()],
    epochs: [state.acceptedEpoch, state.currentEpoch],
    members: [...(state.configuration?.members.keys() ?? [])],
    cluster: textOf(await readClusterId(disk, '/data/version-2')),
    ...(files['/data/version-2/zabra.level'] === undefined
      ? {}
      : { levels: await readFeatureState(disk, '/data/version-2') }),
  })
}

/** Lets time pass while something runs. */
async function meanwhile(ensemble: Ensemble, running: Promise<unknown>): Promise<void> {
  await ensemble.advance(2000)
  await running
}

/** Runs three voters and an observer, and returns the files of a follower and what members have sent each other. */
async function capture(): Promise<Fixture> {
  const ensemble = new Ensemble(4, { observers: [4], adminRoleOperate: ['ip:127.0.0.1'] })
  const streams: { wire: Stream['wire']; opened: boolean; bytes: Uint8Array[] }[] = []
  const connect = ensemble.network.connect.bind(ensemble.network)
  ensemble.network.connect = async (to, options) => {
    const connection = await connect(to, options)
    const wire = ({ 2: 'quorum', 3: 'election' } as const)[Math.floor(to.port / 1000)]
    if (wire !== undefined) record(connection, wire)
    return connection
  }
  function record(connection: Connection, wire: Stream['wire']): void {
    const [sent, received] = [
      { wire, opened: true, bytes: [] },
      { wire, opened: false, bytes: [] },
    ] as [(typeof streams)[0], (typeof streams)[0]]
    streams.push(sent, received)
    const [write, setHandler] = [connection.write.bind(connection), connection.setHandler.bind(connection)]
    connection.write = (bytes) => (sent.bytes.push(bytes.slice()), write(bytes))
    connection.setHandler = (handler: ConnectionHandler) =>
      setHandler({
        data: (chunk) => (received.bytes.push(chunk.slice()), handler.data(chunk)),
        drain: () => handler.drain(),
        closed: (cause) => handler.closed(cause),
      })
  }
  for (const member of ensemble.members.values()) await member.start()
  await ensemble.allServe()
  const [follower] = [1, 2, 3].filter((id) => id !== ensemble.leader)
  const client = await ensemble.client(follower!)
  let xid = 0
  for (const [path, flags] of [
    ['/plain', 0],
    ['/plain/sequential-', 2],
    ['/container', 4],
    ['/ephemeral', 1],
  ] as const)
    client.create(++xid, path, flags, `data of ${path}`)
  await ensemble.receive(client, xid)
  await meanwhile(ensemble, ensemble.server(follower!).snapshot())
  client.ask(++xid, OpCode.setData, (w) => {
    w.string('/plain')
    w.buffer(new TextEncoder().encode('after the snapshot'))
    w.int(0)
  })
  await ensemble.receive(client, 1)
  client.sync(++xid, '/plain')
  await ensemble.receive(client, 1)
  await ensemble.client(follower!, { resume: client.session! })
  const asked = ensemble.member(follower!).http.request('/api/v1/stop-permit', { method: 'POST', body: '' })
  await meanwhile(ensemble, asked)
  await meanwhile(ensemble, ensemble.member(follower!).http.request('/api/v1/cluster'))
  const finalized = ensemble
    .member(ensemble.leader!)
    .http.request('/api/v1/cluster/finalize', { method: 'POST', body: '' })
  await meanwhile(ensemble, finalized)
  const { disk } = ensemble.member(follower!)
  const files: Record<string, string> = {}
  for (const path of ['/data', '/data/version-2'])
    for (const name of await disk.list(path))
      if (!/lock|version-2|set-aside/.test(name))
        files[`${path}/${name}`] = toHex(await disk.readFile(`${path}/${name}`))
  const used = streams
    .map(({ wire, opened, bytes }) => ({ wire, opened, hex: toHex(Buffer.concat(bytes)) }))
    .filter(({ hex }) => hex.length > 0)
  return {
    files,
    data: await readFiles(files),
    streams: used.map((stream) => ({ ...stream, read: readStream(stream) })),
  }
}

if (writtenRelease !== undefined)
  it('members write files and packets', async () => writeFixture('member', await capture()))

describe.each(releases)('what members of release %s have written', (release) => {
  const fixture = readFixture<Fixture>(release, 'member')

  it('is read: the data folder of a member', async () => {
    expect(await readFiles(fixture.files)).toEqual(fixture.data)
  })

  it.each(fixture.streams.map((stream, index) => [index, stream] as const))(
    'is read: packets, stream %i',
    (_, stream) => {
      expect(readStream(stream)).toEqual(stream.read)
    },
  )

  it('starts an ensemble, which has an id then', async () => {
    const ensemble = new Ensemble(4, { observers: [4] })
    for (const { disk } of ensemble.members.values()) putFiles(disk, fixture.files)
    for (const member of ensemble.members.values()) await member.start()
    await ensemble.allServe()
    await ensemble.advance(1000)
    const ids = [...ensemble.members.values()].map(({ disk }) => readClusterId(disk, '/data/version-2'))
    const [first, ...others] = await Promise.all(ids)
    expect([hasClusterId(first!), first!.isProposed]).toEqual([true, false])
    for (const other of others) expect(other).toEqual(first)
    expect(await ensemble.read(1, '/plain')).toEqual(['1:0'])
  })

  it('has every kind of packet that members send in an ordinary run', () => {
    const text = JSON.stringify(fixture.streams.map(({ read }) => read))
    for (const type of ['followerInfo', 'observerInfo', 'leaderInfo', 'ackEpoch', 'newLeader', 'upToDate'])
      expect(text).toContain(`"type":"${type}"`)
    for (const type of ['proposal', 'commit', 'ack', 'inform', 'ping', 'request', 'sync', 'revalidate'])
      expect(text).toContain(`"type":"${type}"`)
    for (const type of ['stopPermit', 'clusterId', 'featureLevel', 'memberReport'])
      expect(text).toContain(`"type":"${type}"`)
  })
})
