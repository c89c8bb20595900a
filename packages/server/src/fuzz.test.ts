import {
  concatBytes,
  DigestMd5Client,
  DigestMd5Server,
  FrameSplitter,
  makeZxid,
  OpCode,
  OPEN_ACL_UNSAFE,
  ProtocolError,
  Reader,
  readConnectRequest,
  SaslError,
  writeConnectRequest,
  Writer,
} from '@zabra/protocol'
import {
  DiskError,
  ManualClock,
  MemoryDisk,
  MemoryNetwork,
  silentLogger,
  type Connection,
} from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { ForwardingConnection } from '@zabra/testkit'
import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { decodeReport, encodeReport } from './admin/http/api/member-report.ts'
import { FULL_REPORT } from './admin/testing/full-report.ts'
import { ProtocolDetector } from './connections/protocol-detector.ts'
import { decodeNotification, encodeNotification } from './core/election/index.ts'
import { ensemble, ElectionHarness } from './core/election/testing/election-harness.ts'
import { PreparerFixture, encodeRequest } from './core/prepare/testing/preparer-fixture.ts'
import { ConfigurationError, parseConfiguration } from './core/quorum/index.ts'
import * as zab from './core/zab/index.ts'
import { establishedLeader, LeaderHarness } from './core/zab/testing/leader-harness.ts'
import { LearnerHarness } from './core/zab/testing/learner-harness.ts'
import { makeReconfig, makeTxn } from './core/zab/testing/txn.ts'
import { DatabaseFixture, LeaderHistory } from './database/testing/database-fixture.ts'
import { encodeHello, HelloReader } from './ensemble/election-hello.ts'
import { logIn, type LoginMethod } from './ensemble/member-login.ts'
import { SaslLogin } from './ensemble/sasl-login.ts'
import { SecretLogin } from './ensemble/secret-login.ts'
import {
  DamageError,
  decodeLoggedTxn,
  encodeLoggedTxn,
  loadSnapshot,
  loadSnapshotStream,
  openEpochFiles,
  RecoveryError,
  scanLog,
  snapshotsIn,
} from './persistence/index.ts'
import { decompressSnappy, SnappyCompressor } from './persistence/snappy.ts'
import { createTxn, FOLDER, LogFixture, newTree, recoverFrom } from './persistence/testing/log-fixture.ts'
import { loadSettings } from './settings/load.ts'
import { parseJaas } from './settings/jaas.ts'
import { chunksOf, damaged, fuzz, FUZZ_INPUTS } from './testing/fuzz.ts'

const { PacketType } = zab
const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

function written(write: (writer: Writer) => void): Uint8Array {
  const writer = new Writer()
  write(writer)
  return writer.take()
}

const packet = (type: number, zxid: number, data: Uint8Array | null, withIdentity = false): Uint8Array =>
  written((w) =>
    zab.writePacket(w, type, zxid, data, withIdentity ? [{ scheme: 'ip', id: '10.0.0.1' }] : null),
  )

const MEMBERS = 'server.1=h1:2888:3888;2181\nserver.2=h2:2888:3888;2181\nserver.3=h3:2888:3888;2181'
/** Milliseconds for one decoder; the slowest takes 4 ms for an input on a busy machine. */
const LONG = 120_000 + FUZZ_INPUTS * 10

describe('random and damaged bytes of a client', () => {
  it('are split into frames or refused', { timeout: LONG }, async () => {
    const sample = written((w) => {
      for (const length of [0, 5, 300]) w.buffer(new Uint8Array(length).fill(7))
    })
    await fuzz({
      samples: [sample],
      decode: (bytes, random) => {
        let received = 0
        const splitter = new FrameSplitter({
          maxLength: 4096,
          frame: (_, start, end) => (received += end - start),
        })
        for (const chunk of chunksOf(random, bytes)) splitter.push(chunk)
        expect(received + splitter.pending).toBeLessThanOrEqual(bytes.length)
      },
    })
  })

  it('are a four-letter command, frames or incomplete', { timeout: LONG }, () =>
    fuzz({
      samples: [text('ruok'), text('stmk\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0003'), text('isro')],
      decode: (bytes, random) => {
        const detector = new ProtocolDetector((first) =>
          textOf(first.subarray(0, 4)) === 'stmk' ? { name: 'stmk', argumentBytes: 8 } : undefined,
        )
        for (const chunk of chunksOf(random, bytes)) if (detector.push(chunk) !== undefined) break
      },
    }),
  )

  it('are a connect request or refused', { timeout: LONG }, () => {
    const request = {
      protocolVersion: 0,
      lastZxidSeen: 5n,
      timeOut: 4000,
      sessionId: 9n,
      passwd: new Uint8Array(16),
    }
    return fuzz({
      samples: [
        written((w) => writeConnectRequest(w, request)),
        written((w) => writeConnectRequest(w, { ...request, readOnly: true })),
      ],
      decode: (bytes) => readConnectRequest(new Reader(bytes)),
    })
  })

  it('as the body of a write are prepared or get an error', { timeout: LONG }, async () => {
    const parts = [
      { op: 'create', path: '/a', data: 'x' },
      { op: 'createTTL', path: '/a/t', flags: 5, ttl: 5n },
      { op: 'setData', path: '/a', data: 'y' },
      { op: 'setACL', path: '/a', acl: OPEN_ACL_UNSAFE },
      { op: 'check', path: '/a' },
      { op: 'delete', path: '/a' },
    ] as const
    const requests = [...parts.map(encodeRequest), encodeRequest(parts)]
    const fixture = new PreparerFixture()
    fixture.apply({ op: 'create', path: '/a' })
    const types = [...requests.map(({ type }) => type), OpCode.reconfig, OpCode.closeSession, 0, -1, 77]
    let next = 0
    await fuzz({
      samples: requests.map(({ body }) => body),
      decode: (bytes) => {
        fixture.prepareBytes(types[next++ % types.length]!, bytes)
        fixture.preparer.forgetApplied(fixture.zxid)
      },
    })
    expect(fixture.tree.nodeCount).toBe(new PreparerFixture().tree.nodeCount + 1)
  })

  it('as a token of DIGEST-MD5 are refused', { timeout: LONG }, async () => {
    const names = { nonce: () => 'n0nce', users: new Map([['ada', 'pass']]) }
    const client = new DigestMd5Client({ username: 'ada', password: 'pass', cnonce: () => 'cn' })
    await client.step()
    const challenge = new DigestMd5Server(names).challenge()
    const response = (await client.step(challenge))!
    await fuzz({
      samples: [response],
      decode: (bytes) => {
        const server = new DigestMd5Server(names)
        server.challenge()
        const result = server.evaluate(bytes)
        // Damage behind the checked directives may leave a right response.
        expect(result.ok ? result.user : 'ada').toBe('ada')
      },
    })
    await fuzz({
      samples: [challenge],
      decode: async (bytes) => {
        const other = new DigestMd5Client({ username: 'ada', password: 'pass', cnonce: () => 'cn' })
        await other.step()
        await other.step(bytes)
      },
      isRefusal: (error) => error instanceof SaslError,
    })
  })
})

describe('random and damaged bytes on the quorum port', () => {
  const info = zab.encodeLearnerInfo({ serverId: 2, protocolVersion: zab.PROTOCOL_VERSION, configVersion: 0 })
  const touches = zab.encodeTouches([{ id: 7n, timeout: 4000 }])
  const forwarded = written((w) => {
    w.long(7n)
    w.int(3)
    w.int(OpCode.create)
    w.raw(encodeRequest({ op: 'create', path: '/a' }).body)
  })
  const report = text(
    '{"state":"follower","zxid":"0x100000001","checks":[{"name":"log","ok":true,"detail":"ok"}]}',
  )
  const learnerReport = zab.encodeLearnerReportPacket({
    kind: 'report',
    number: 3,
    members: [{ id: 2, report, ageMs: 0 }],
  })
  const leaderReport = zab.encodeLeaderReportPacket({
    kind: 'answer',
    number: 3,
    members: [
      { id: 1, report, ageMs: 5 },
      { id: 2, report: undefined, reason: 'silent' },
    ],
  })
  const ofLearner = [
    packet(PacketType.followerInfo, makeZxid(0, 0), info),
    packet(PacketType.observerInfo, makeZxid(0, 0), info),
    packet(PacketType.ackEpoch, 0, zab.encodeAckEpoch(0)),
    packet(PacketType.ack, makeZxid(1, 0), null),
    packet(PacketType.ack, makeZxid(1, 1), null),
    packet(PacketType.ping, 0, touches),
    packet(PacketType.request, -1, forwarded, true),
    packet(PacketType.revalidate, -1, zab.encodeRevalidation({ session: 7n, timeout: 4000 })),
    packet(PacketType.sync, -1, null),
  ]
  const ofLeader = [
    packet(PacketType.leaderInfo, makeZxid(1, 0), zab.encodeLeaderInfo()),
    packet(PacketType.diff, 0, null),
    packet(PacketType.trunc, 0, null),
    packet(PacketType.snap, 0, null),
    packet(PacketType.proposal, makeZxid(1, 1), makeTxn(makeZxid(1, 1), 1).payload),
    packet(
      PacketType.proposal,
      makeZxid(1, 1),
      makeReconfig(makeZxid(1, 1), `${MEMBERS}\nversion=100000001`),
    ),
    packet(PacketType.commit, makeZxid(1, 1), null),
    packet(PacketType.inform, makeZxid(1, 1), makeTxn(makeZxid(1, 1), 1).payload),
    packet(PacketType.commitAndActivate, makeZxid(1, 1), zab.encodeDesignatedLeader(1)),
    packet(
      PacketType.informAndActivate,
      makeZxid(1, 1),
      zab.encodeInformAndActivate(1, makeReconfig(makeZxid(1, 1), `${MEMBERS}\nversion=100000001`)),
    ),
    packet(PacketType.newLeader, makeZxid(1, 0), zab.encodeConfigurationText(MEMBERS)),
    packet(PacketType.upToDate, -1, null),
    packet(PacketType.ping, 0, null),
    packet(PacketType.revalidate, -1, zab.encodeRevalidationReply({ session: 7n, valid: true })),
  ]
  /** Calls `received` for each packet in the bytes, which arrive in chunks. */
  const split = (
    chunks: Iterable<Uint8Array>,
    received: (packet: zab.QuorumPacket) => void,
    raw?: (bytes: Uint8Array) => number,
  ): void => {
    const splitter = new zab.PacketSplitter({
      maxData: 1 << 20,
      packet: (type, zxid, data, auth) => received({ type, zxid, data: data && data.slice(), auth }),
      ...(raw === undefined ? {} : { raw }),
    })
    for (const chunk of chunks) splitter.push(chunk)
  }

  it('are split into packets or refused', { timeout: LONG }, () =>
    fuzz({
      samples: [...ofLearner, ...ofLeader],
      decode: (bytes, random) => {
        let dataBytes = 0
        const chunks = chunksOf(random, bytes)
        split(
          chunks,
          ({ data }) => (dataBytes += data?.length ?? 0),
          (raw) => Math.min(raw.length, 3),
        )
        expect(dataBytes).toBeLessThanOrEqual(bytes.length)
      },
    }),
  )

  it.each([
    ['the info of a learner', zab.decodeLearnerInfo, info],
    ['the info of a leader', zab.decodeLeaderInfo, zab.encodeLeaderInfo()],
    ['the epoch of a learner', zab.decodeAckEpoch, zab.encodeAckEpoch(1)],
    ['touched sessions', (data: Uint8Array) => [...zab.touchSteps(data, () => {})], touches],
    [
      'the secret of sessions',
      zab.decodeSecretReport,
      zab.encodeSecretReport({
        secret: { generation: 3, bytes: new Uint8Array(32), since: 5 },
        holders: [1, 2],
        others: [3],
      }),
    ],
    ['feature levels', zab.decodeFeatureState, zab.encodeFeatureState({ finalized: 1, proposed: 2 })],
    [
      'reported feature levels',
      zab.decodeFeatureReport,
      zab.encodeFeatureReport([{ id: 2, release: 1, stored: { finalized: 1, proposed: 2 } }]),
    ],
    ['what a learner sends about reports', zab.decodeLearnerReportPacket, learnerReport],
    ['what a leader sends about reports', zab.decodeLeaderReportPacket, leaderReport],
    ['a revalidation', zab.decodeRevalidation, zab.encodeRevalidation({ session: 7n, timeout: 1 })],
    [
      'a reply to a revalidation',
      zab.decodeRevalidationReply,
      zab.encodeRevalidationReply({ session: 7n, valid: true }),
    ],
    [
      'a forwarded request',
      (bytes: Uint8Array) => zab.decodeForwardedRequest(bytes, [], new Reader()),
      forwarded,
    ],
    ['a designated leader', zab.decodeDesignatedLeader, zab.encodeDesignatedLeader(1)],
    [
      'an activated configuration',
      zab.decodeInformAndActivate,
      zab.encodeInformAndActivate(1, new Uint8Array(9)),
    ],
    [
      'the configuration of a NEWLEADER',
      (data: Uint8Array) => zab.decodeConfiguration(zab.decodeConfigurationText(data)),
      zab.encodeConfigurationText(MEMBERS),
    ],
    ['a reconfig', zab.proposedConfiguration, makeReconfig(makeZxid(1, 1), MEMBERS)],
  ] as const)('as %s are decoded or refused', { timeout: LONG }, async (_, decode, sample) =>
    fuzz({ samples: [sample], decode }),
  )

  it('as a report of a member are taken or named wrong', { timeout: LONG }, () =>
    fuzz({
      samples: [report, encodeReport(FULL_REPORT)],
      decode: (bytes) => {
        const { report: read } = decodeReport(bytes)
        expect(Object.keys(read)).toEqual(Object.keys(FULL_REPORT))
        expect(JSON.stringify(read).length).toBeLessThanOrEqual(bytes.length * 6 + 1000)
      },
      isRefusal: () => false,
    }),
  )

  const leaderIn = (phase: 'discovery' | 'synchronisation' | 'broadcast'): LeaderHarness => {
    if (phase === 'broadcast') return establishedLeader(MEMBERS, [1]).propose(1)
    const harness = new LeaderHarness(MEMBERS).step({ type: 'start' })
    if (phase === 'synchronisation') harness.identify(1).stored('acceptedEpoch', 1).ackEpoch(1)
    return harness
  }
  it.each(['discovery', 'synchronisation', 'broadcast'] as const)(
    'to a leader in the phase %s are refused or have no effect on its epoch',
    { timeout: LONG },
    (phase) =>
      fuzz({
        samples: [...ofLearner, concatBytes(ofLearner), concatBytes(ofLearner.slice(0, 4))],
        share: 0.2,
        decode: (bytes, random) => {
          const harness = leaderIn(phase)
          harness.takeLog()
          harness.step({ type: 'accepted', from: 2 })
          try {
            split(chunksOf(random, bytes), (received) => harness.packet(2, received))
          } finally {
            const log = harness.takeLog()
            if (phase === 'broadcast') expect(log.filter((line) => line.startsWith('step down'))).toEqual([])
          }
        },
      }),
  )

  const learnerIn = (phase: 'discovery' | 'synchronisation' | 'waiting' | 'broadcast'): LearnerHarness => {
    const harness = new LearnerHarness()
    if (phase === 'broadcast') harness.follow(1)
    else if (phase === 'discovery') harness.step({ type: 'connected' })
    else harness.acceptEpoch(1)
    if (phase === 'waiting') {
      harness.receive('diff')
      harness.ackNewLeader(1)
    }
    return harness
  }
  it.each(['discovery', 'synchronisation', 'waiting', 'broadcast'] as const)(
    'to a learner in the phase %s are refused or processed',
    { timeout: LONG },
    (phase) =>
      fuzz({
        samples: [...ofLeader, concatBytes(ofLeader.slice(0, 2)), concatBytes(ofLeader.slice(4))],
        share: 0.2,
        decode: (bytes, random) => {
          const harness = learnerIn(phase)
          split(chunksOf(random, bytes), ({ type, zxid, data }) => harness.learner.receive(type, zxid, data))
          harness.takeLog()
        },
      }),
  )
})

describe('random and damaged bytes on the election port', () => {
  const vote = { leader: 2, zxid: makeZxid(1, 5), round: 3, epoch: 1 }
  const notification = encodeNotification('looking', vote, `${MEMBERS}\nversion=0`)
  const address = { host: '127.0.0.1', port: 3888 }

  it('are a hello, refused or incomplete', { timeout: LONG }, () =>
    fuzz({
      samples: [
        encodeHello(2, [address], false),
        encodeHello(2, [address, { host: '::1', port: 3889 }], true),
        written((w) => w.long(2n)),
      ],
      decode: (bytes, random) => {
        const reader = new HelloReader()
        for (const chunk of chunksOf(random, bytes)) if (reader.push(chunk) !== undefined) break
      },
    }),
  )

  it('as a notification are refused or counted as a vote', { timeout: LONG }, () =>
    fuzz({
      samples: [notification, notification.slice(0, 28), notification.slice(0, 40)],
      share: 0.5,
      decode: (bytes) => {
        const harness = new ElectionHarness(1, { adoptsConfigurations: true })
        harness.look({ active: ensemble([1, 2, 3]) })
        const decoded = decodeNotification(bytes)
        for (const from of [2, 3]) harness.step({ type: 'notification', from, notification: decoded })
        // What is sent can be received again.
        for (const work of harness.work)
          if (work.do === 'send')
            decodeNotification(encodeNotification(work.state, work.vote, work.configuration))
      },
    }),
  )
})

describe('random and damaged bytes of a login between members', () => {
  // The nonces of all logins are the same, so a recorded login is valid.
  const random = { bytes: (length: number) => new Uint8Array(length).fill(5) }
  const sasl = new SaslLogin({
    users: new Map([['ada', 'pass']]),
    self: { user: 'ada', password: 'pass' },
    isOptional: true,
    userOf: new Map(),
    random,
  })
  const secret = new SecretLogin({ self: 1, secret: 'a secret of the members', random })

  it.each([
    ['by SASL', sasl],
    ['with the shared secret', secret],
  ] satisfies [string, LoginMethod][])(
    '%s are refused unless the proof is right',
    { timeout: LONG },
    async (_, method) => {
      const clock = new ManualClock()
      const network = new MemoryNetwork(clock)
      const recorded: Uint8Array[] = []
      const silent: Connection[] = []
      await network.listen({ port: 9 }, (connection) => {
        const reader = method.accept(connection, 'quorum')
        const data = (chunk: Uint8Array): void => {
          recorded.push(chunk.slice())
          reader.push(chunk)
        }
        connection.setHandler({ data, drain() {}, closed() {} })
        silent.push(new SilentConnection(connection))
      })
      const target = { id: 1, port: 'quorum' } as const
      const loggedIn = logIn(
        method,
        await network.connect({ host: 'x', port: 9 }),
        target,
        new AbortController().signal,
      )
      await clock.untilIdle()
      await loggedIn
      const valid = concatBytes(recorded)
      await fuzz({
        samples: [valid, concatBytes([valid, text('and the first packet')])],
        decode: (bytes, source) => {
          const reader = method.accept(silent[0]!, 'quorum')
          for (const chunk of chunksOf(source, bytes)) {
            const login = reader.push(chunk)
            if (login === undefined) continue
            if (method === secret) expect(Buffer.from(valid).compare(bytes, 0, valid.length)).toBe(0)
            return
          }
        },
      })
    },
  )
})

/** A connection on which what is written is dropped. */
class SilentConnection extends ForwardingConnection {
  override write(): boolean {
    return true
  }
}

const isFileRefusal = (error: unknown): boolean =>
  error instanceof DamageError ||
  error instanceof RecoveryError ||
  error instanceof ProtocolError ||
  error instanceof RangeError

describe('random and damaged files', () => {
  const make = async (): Promise<LogFixture> => {
    const fixture = await new LogFixture().open()
    await fixture.snapshot()
    await fixture.appendAll(1, 6)
    await fixture.log.close()
    return fixture
  }

  it('as a transaction are decoded or refused', { timeout: LONG }, () =>
    fuzz({
      samples: [
        written((w) => encodeLoggedTxn(w, createTxn(5))),
        written((w) => encodeLoggedTxn(w, { ...createTxn(6), digest: { hi: 1, lo: 2 } })),
        written((w) => encodeLoggedTxn(w, { ...createTxn(7), txn: { type: OpCode.multi, txns: [] } })),
        written((w) =>
          encodeLoggedTxn(w, {
            ...createTxn(8),
            txn: { type: OpCode.closeSession, paths2Delete: ['/a', '/b'] },
          }),
        ),
      ],
      decode: (bytes) => decodeLoggedTxn(new Reader(bytes)),
    }),
  )

  it('as a log are scanned to a whole entry or refused', { timeout: LONG }, async () => {
    const { disk } = await make()
    const path = `${FOLDER}/log.1`
    const file = await disk.readFile(path)
    await fuzz({
      samples: [file.slice(0, file.findLastIndex((byte) => byte !== 0) + 200)],
      share: 0.2,
      decode: async (bytes) => {
        const damaged = new MemoryDisk()
        damaged.putFile(path, bytes)
        await scanLog(damaged, path, () => {})
      },
      isRefusal: isFileRefusal,
    })
  })

  const compress = {
    none: (bytes: Uint8Array) => bytes,
    gz: (bytes: Uint8Array) => new Uint8Array(gzipSync(bytes, { level: 1 })),
    snappy: (bytes: Uint8Array) => new SnappyCompressor().write(bytes),
  }
  it.each(['none', 'gz', 'snappy'] as const)(
    'as a snapshot (%s) are loaded whole or refused, whether they are damaged before or after compression',
    { timeout: LONG },
    async (kind) => {
      const fixture = await make()
      const plain = await fixture.disk.readFile(`${FOLDER}/${await fixture.snapshot()}`)
      const name = await fixture.snapshot(kind)
      const sample = await fixture.disk.readFile(`${FOLDER}/${name}`)
      const nodes = fixture.tree.nodeCount
      const file = snapshotsIn([name])[0]!
      const disk = new MemoryDisk()
      let inputs = 0
      await fuzz({
        samples: [sample],
        share: kind === 'none' ? 0.2 : 0.05,
        decode: async (bytes, random) => {
          const contents = inputs++ % 2 === 0 ? bytes : await compress[kind](damaged(random, [plain]))
          disk.putFile(`${FOLDER}/${name}`, contents)
          const tree = newTree()
          await loadSnapshot(disk, FOLDER, file, tree, nodeCompression)
          expect(tree.nodeCount).toBe(nodes)
        },
        isRefusal: isFileRefusal,
      })
    },
  )

  it('as a snapshot of a leader are installed or refused', { timeout: LONG }, async () => {
    const source = new DatabaseFixture().source(new LeaderHistory().createRange(1, 1, 5))
    await fuzz({
      samples: [concatBytes(await source.chunks)],
      share: 0.2,
      decode: async (bytes, random) => {
        const chunks = chunksOf(random, bytes)
        const source = { next: async () => chunks.next().value as Uint8Array | undefined }
        await loadSnapshotStream(source, 'a leader', newTree(), 5)
      },
      isRefusal: isFileRefusal,
    })
  })

  it('as a snappy block are decompressed or refused', { timeout: LONG }, () =>
    fuzz({
      samples: [
        Uint8Array.of(5, 4 << 2, 1, 2, 3, 4, 5),
        Uint8Array.of(20, 3 << 2, 1, 2, 3, 4, (15 << 2) | 2, 4, 0),
      ],
      decode: (bytes) => decompressSnappy(bytes),
      isRefusal: (error) => error instanceof RangeError || isFileRefusal(error),
    }),
  )

  it('as an epoch file are read or refused', { timeout: LONG }, () =>
    fuzz({
      samples: [text('3'), text('3\n'), text('2097151')],
      share: 0.5,
      decode: async (bytes) => {
        const disk = new MemoryDisk()
        disk.putFile(`${FOLDER}/acceptedEpoch`, bytes)
        await openEpochFiles(disk, silentLogger, FOLDER, 0)
      },
      isRefusal: (error) => error instanceof RecoveryError,
    }),
  )

  it('in a data folder are recovered or refused', { timeout: LONG }, async () => {
    const { disk } = await make()
    const paths = disk.paths()
    let next = 0
    await fuzz({
      samples: await Promise.all(paths.map((path) => disk.readFile(path))),
      share: 0.1,
      decode: async (bytes) => {
        const damaged = disk.clone()
        damaged.putFile(paths[next++ % paths.length]!, bytes)
        await recoverFrom(damaged, false)
      },
      isRefusal: (error) => isFileRefusal(error) && !(error instanceof DiskError),
    })
  })
})

describe('random and damaged text', () => {
  it('as a configuration is parsed or refused', { timeout: LONG }, () =>
    fuzz({
      samples: [text(`${MEMBERS}\ngroup.1=1:2\ngroup.2=3\nweight.1=2\nversion=1a`), text(MEMBERS)],
      decode: (bytes) => parseConfiguration(textOf(bytes)),
      isRefusal: (error) => error instanceof ConfigurationError,
    }),
  )

  it('as zoo.cfg gives settings or findings', { timeout: LONG }, () =>
    fuzz({
      samples: [
        text(
          `dataDir=/data\nclientPort=2181\ntickTime=2000\n4lw.commands.whitelist=*\nsslQuorum=true\nmaxClientCnxns=60\n${MEMBERS}`,
        ),
      ],
      share: 0.2,
      decode: (bytes) => {
        const files = { read: () => undefined, resolve: (path: string) => path }
        const { settings, findings } = loadSettings({ file: { name: 'zoo.cfg', text: textOf(bytes) }, files })
        const errors = findings.filter(({ severity }) => severity === 'error')
        expect(settings === undefined).toBe(errors.length > 0)
      },
    }),
  )

  it('as a JAAS file gives sections or its first error', { timeout: LONG }, () =>
    fuzz({
      samples: [text('Server {\n  DigestLoginModule required user_ada="pass" /* c */ x=y;\n};\n// end')],
      decode: (bytes) => parseJaas(textOf(bytes)),
    }),
  )
})
