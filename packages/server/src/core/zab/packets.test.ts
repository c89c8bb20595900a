import { ProtocolError, Reader, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import {
  decodeAckEpoch,
  decodeDesignatedLeader,
  decodeForwardedRequest,
  decodeInformAndActivate,
  decodeLeaderInfo,
  decodeLearnerInfo,
  decodeRevalidation,
  decodeRevalidationReply,
  encodeAckEpoch,
  encodeDesignatedLeader,
  encodeInformAndActivate,
  encodeLeaderInfo,
  encodeLearnerInfo,
  encodePacket,
  encodeRevalidation,
  encodeRevalidationReply,
  encodeSnapshotInfo,
  encodeTouches,
  packetName,
  PacketSplitter,
  PacketType,
  touchSteps,
  writeForwardedRequest,
  type QuorumPacket,
  decodeSecretReport,
  decodeSnapshotInfo,
  encodeFeatureReport,
  encodeFeatureState,
  encodeSecretReport,
  PROTOCOL_VERSION,
  decodeFeatureReport,
  decodeFeatureState,
  decodeMemberExtension,
  decodeStopPermitAnswer,
  decodeStopPermitRequest,
  encodeStopPermitAnswer,
  encodeStopPermitRequest,
  LEARNER_INFO_BYTES,
  MEMBER_EXTENSION_BYTES,
  MAX_STOP_PERMIT_MS,
  withExtension,
} from './index.ts'
import { proposedConfiguration } from './payloads.ts'
import { makeReconfig } from './testing/txn.ts'

const bytesOf = (hex: string): Uint8Array =>
  Uint8Array.from(hex.replaceAll(' ', '').match(/../g) ?? [], (byte) => parseInt(byte, 16))
const hexOf = (bytes: Uint8Array | null): string =>
  bytes === null ? 'null' : [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

function encode(packet: QuorumPacket): Uint8Array {
  const writer = new Writer()
  encodePacket(writer, packet)
  return writer.take()
}

/** Splits chunks into packets with copied data. */
function cut(chunks: readonly Uint8Array[], maxData = 1 << 20): QuorumPacket[] {
  const packets: QuorumPacket[] = []
  const splitter = new PacketSplitter({
    maxData,
    packet: (type, zxid, data, auth) => packets.push({ type, zxid, data: data && data.slice(), auth }),
  })
  for (const chunk of chunks) splitter.push(chunk)
  expect(splitter.bufferedBytes).toBe(0)
  return packets
}

// Captured from Apache ZooKeeper 3.9.
const captured: [string, string, Partial<QuorumPacket>][] = [
  [
    'followerInfo',
    '0000000b 0000000000000000 00000014 0000000000000002 00010000 0000000000000000 ffffffff',
    { zxid: 0 },
  ],
  [
    'observerInfo',
    '00000010 0000000000000000 00000014 0000000000000004 00010000 0000000000000000 ffffffff',
    { zxid: 0 },
  ],
  ['leaderInfo', '00000011 0000000100000000 00000004 00010000 ffffffff', { zxid: 0x1_0000_0000 }],
  ['ackEpoch', '00000012 0000000100000006 00000004 00000001 ffffffff', { zxid: 0x1_0000_0006 }],
  ['diff', '0000000d 0000000100000007 ffffffff ffffffff', { data: null }],
  ['trunc', '0000000e 0000000100000007 ffffffff ffffffff', { data: null }],
  ['snap', '0000000f 0000000100000000 ffffffff ffffffff', { data: null }],
  ['ack', '00000003 0000000100000000 ffffffff ffffffff', { auth: null }],
  ['upToDate', '0000000c ffffffffffffffff ffffffff ffffffff', { zxid: -1 }],
  ['ping', '00000005 0000000100000002 0000000c 0100001402ee0000 00001f40 ffffffff', { zxid: 0x1_0000_0002 }],
  ['ping', '00000005 0000000100000002 00000000 ffffffff', { data: new Uint8Array(0) }],
  ['revalidate', '00000006 ffffffffffffffff 0000000c 0200001736e40000 00002710 ffffffff', { zxid: -1 }],
  ['revalidate', '00000006 ffffffffffffffff 00000009 0200001736e40000 01 ffffffff', { zxid: -1 }],
  ['sync', '00000007 0000000000000000 ffffffff ffffffff', { zxid: 0 }],
  [
    'commitAndActivate',
    '00000009 000000010000001b 00000008 0000000000000003 ffffffff',
    { zxid: 0x1_0000_001b },
  ],
  [
    'request',
    '00000001 ffffffffffffffff 0000003e 0100001402ee0000 00000001 00000001 000000022f61 0000000568656c6c6f 00000001 0000001f 00000005776f726c64 00000006616e796f6e65 00000000 00000001 000000026970 000000093132372e302e302e31',
    { auth: [{ scheme: 'ip', id: '127.0.0.1' }] },
  ],
  [
    'proposal',
    '00000002 0000000100000002 0000005b 0100001402ee0000 00000001 0000000100000002 000001a1fb44a73e 00000001 000000022f61 0000000568656c6c6f 00000001 0000001f 00000005776f726c64 00000006616e796f6e65 00 00000001 00000002 0000000152415ba6 ffffffff',
    { zxid: 0x1_0000_0002 },
  ],
]

describe('a packet captured from Apache ZooKeeper', () => {
  it.each(captured)('%s is decoded, and encoded to the same bytes', (name, hex, expected) => {
    const bytes = bytesOf(hex)
    const [packet, ...more] = cut([bytes])
    expect(more).toEqual([])
    expect(packetName(packet!.type)).toBe(name)
    expect(packet).toMatchObject(expected)
    expect(hexOf(encode(packet!))).toBe(hexOf(bytes))
  })

  it('is named by its number when its type is unknown', () => {
    expect(packetName(77)).toBe('type 77')
    expect(cut([encode({ type: 77, zxid: 0, data: null, auth: null })])[0]!.type).toBe(77)
  })
})

describe('the payload of a packet', () => {
  const data = (index: number): Uint8Array => cut([bytesOf(captured[index]![1])])[0]!.data!

  it('is decoded from captured packets, and encoded to the same bytes', () => {
    expect(decodeLearnerInfo(data(0))).toEqual({ serverId: 2, protocolVersion: 0x10000, configVersion: 0 })
    expect(hexOf(encodeLearnerInfo(decodeLearnerInfo(data(0))))).toBe(hexOf(data(0)))
    expect(decodeLeaderInfo(data(2))).toBe(0x10000)
    expect(hexOf(encodeLeaderInfo())).toBe(hexOf(data(2)))
    expect(decodeAckEpoch(data(3))).toBe(1)
    expect(decodeAckEpoch(encodeAckEpoch(-1))).toBe(-1)
    const touches: { id: bigint; timeout: number }[] = []
    expect([...touchSteps(data(9), (id, timeout) => touches.push({ id, timeout }))]).toEqual([])
    expect(touches).toEqual([{ id: 0x100001402ee0000n, timeout: 8000 }])
    expect(hexOf(encodeTouches(touches))).toBe(hexOf(data(9)))
    expect([...touchSteps(null, () => expect.unreachable())]).toEqual([])
    expect(encodeTouches([])).toHaveLength(0)
    const revalidation = { session: 0x200001736e40000n, timeout: 10000 }
    expect(decodeRevalidation(data(11))).toEqual(revalidation)
    expect(hexOf(encodeRevalidation(revalidation))).toBe(hexOf(data(11)))
    const answer = { session: 0x200001736e40000n, valid: true }
    expect(decodeRevalidationReply(data(12))).toEqual(answer)
    expect(hexOf(encodeRevalidationReply(answer))).toBe(hexOf(data(12)))
    const refused = { session: 1n, valid: false, isRefused: true }
    expect([...encodeRevalidationReply(refused)]).toEqual([0, 0, 0, 0, 0, 0, 0, 1, 0, 1])
    expect(decodeRevalidationReply(encodeRevalidationReply(refused))).toEqual(refused)
    expect(decodeDesignatedLeader(data(14))).toBe(3)
    expect(hexOf(encodeDesignatedLeader(3))).toBe(hexOf(data(14)))
    const forwarded = bytesOf(captured[15]![1])
    const request = decodeForwardedRequest(data(15), cut([forwarded])[0]!.auth!, new Reader())
    expect(request).toMatchObject({ sessionId: 0x100001402ee0000n, xid: 1, type: 1 })
    const writer = new Writer()
    writeForwardedRequest(writer, request)
    expect(hexOf(writer.bytes())).toBe(hexOf(forwarded))
    const informed = encodeInformAndActivate(3, data(16))
    expect(decodeInformAndActivate(informed)).toEqual({ leader: 3, payload: data(16) })
  })

  it('of an old learner gets the oldest values for missing fields', () => {
    expect(decodeLearnerInfo(data(0).slice(0, 8))).toEqual({
      serverId: 2,
      protocolVersion: 1,
      configVersion: 0,
    })
    expect(decodeLearnerInfo(data(0).slice(0, 12))).toMatchObject({
      protocolVersion: 0x10000,
      configVersion: 0,
    })
  })

  it('is rejected with a ProtocolError when it is too short', () => {
    const short = new Uint8Array(3)
    const decoders = [
      decodeLearnerInfo,
      decodeLeaderInfo,
      decodeAckEpoch,
      decodeRevalidation,
      decodeRevalidationReply,
      (bytes: Uint8Array | null) => decodeForwardedRequest(bytes, [], new Reader()),
      decodeDesignatedLeader,
      decodeInformAndActivate,
      (bytes: Uint8Array | null) => touchSteps(bytes, () => {}),
    ]
    for (const decode of decoders) expect(() => decode(short)).toThrow(ProtocolError)
    for (const decode of decoders.slice(0, -1)) expect(() => decode(null)).toThrow(ProtocolError)
    const touched: bigint[] = []
    expect(() => touchSteps(new Uint8Array(25), (session) => touched.push(session))).toThrow(ProtocolError)
    expect(touched).toEqual([])
  })

  it('of a proposal holds a configuration only when its whole type is that of a reconfig', () => {
    const reconfig = makeReconfig(1, 'server.1=h:1:2')
    expect(proposedConfiguration(reconfig)?.members.size).toBe(1)
    for (const at of [28, 29, 30]) {
      const other = reconfig.slice()
      other[at] = 1
      expect(proposedConfiguration(other)).toBeUndefined()
    }
  })
})

const anyPacket = fc.record({
  type: fc.integer({ min: 1, max: 20 }),
  zxid: fc.constantFrom(-1, 0, 0x1_0000_0001, 0x1f_ffff_0000_0000),
  data: fc.option(fc.uint8Array({ maxLength: 60 })),
  auth: fc.option(fc.array(fc.record({ scheme: fc.string(), id: fc.string() }), { maxLength: 3 })),
})

describe('the secret of sessions', () => {
  const report = {
    secret: { generation: 7, bytes: new Uint8Array(32).fill(9), since: undefined },
    holders: [1, 4],
    others: [3],
  }

  it('is a copy, which does not change with the packet', () => {
    const data = encodeSecretReport(report)
    const { secret } = decodeSecretReport(data)
    data.fill(1)
    expect(secret.bytes).toEqual(report.secret.bytes)
  })

  it('of the first and the last generation, since 1970 and of 1,000 servers is read', () => {
    for (const generation of [0, 2 ** 40]) {
      const secret = { ...report.secret, generation, since: 0 }
      const holders = Array.from({ length: 1000 }, (_, id) => id)
      for (const others of [holders, []]) {
        const longest = { secret, holders, others }
        expect(decodeSecretReport(encodeSecretReport(longest))).toEqual(longest)
      }
    }
  })

  it('is read as it was written, used or not', () => {
    expect(decodeSecretReport(encodeSecretReport(report))).toEqual(report)
    const used = { ...report, secret: { ...report.secret, since: 1_700_000_000_000 } }
    expect(decodeSecretReport(encodeSecretReport(used))).toEqual(used)
  })

  it.each([
    [
      'a generation after which none would be left',
      encodeSecretReport({ ...report, secret: { ...report.secret, generation: 2 ** 41 } }),
    ],
    [
      'a negative generation',
      encodeSecretReport({ ...report, secret: { ...report.secret, generation: -1 } }),
    ],
    [
      'a negative number of servers',
      Uint8Array.of(...encodeSecretReport(report).subarray(0, 48), 255, 255, 255, 255, 0, 0, 0, 0),
    ],
    ['1,001 servers', encodeSecretReport({ ...report, others: Array.from({ length: 1001 }, (_, id) => id) })],
    [
      'more servers than any ensemble has',
      Uint8Array.of(...encodeSecretReport(report).subarray(0, 48), 127, 0, 0, 0),
    ],
    ['a secret that is cut off', encodeSecretReport(report).subarray(0, 40)],
  ])('with %s is refused', (_, data) => {
    expect(() => decodeSecretReport(data)).toThrow(ProtocolError)
  })
})

describe('a member extension', () => {
  const info = { serverId: 3, protocolVersion: PROTOCOL_VERSION, configVersion: 5 }
  const cluster = { generation: 2, bytes: new Uint8Array(16).fill(7), isProposed: false }
  const extension = { level: 258, sharesSecret: true, hasData: false, cluster }

  it('stands behind the info of a learner, which reads as before', () => {
    const extended = withExtension(encodeLearnerInfo(info), extension)
    expect(decodeLearnerInfo(extended)).toEqual(info)
    expect(decodeMemberExtension(extended, LEARNER_INFO_BYTES)).toEqual(extension)
  })

  it('may be followed by bytes of later releases', () => {
    const longer = Uint8Array.of(...withExtension(encodeLearnerInfo(info), extension), 1, 2, 3)
    expect(decodeMemberExtension(longer, LEARNER_INFO_BYTES)).toEqual(extension)
  })

  it('may hold the feature levels that the member has stored', () => {
    const given = { ...extension, features: { finalized: 258, proposed: 772 } }
    const extended = withExtension(encodeLearnerInfo(info), given)
    expect(extended).toHaveLength(LEARNER_INFO_BYTES + MEMBER_EXTENSION_BYTES + 4)
    expect(decodeMemberExtension(extended, LEARNER_INFO_BYTES)).toEqual(given)
    expect(decodeMemberExtension(Uint8Array.of(...extended, 1), LEARNER_INFO_BYTES)).toEqual(given)
    expect(decodeMemberExtension(extended.subarray(0, -1), LEARNER_INFO_BYTES)).toEqual(extension)
  })

  it('holds its two flags apart, and a copy of the cluster', () => {
    for (const [sharesSecret, hasData] of [
      [false, true],
      [true, true],
      [false, false],
    ] as const) {
      const given = { ...extension, sharesSecret, hasData }
      const bytes = withExtension(new Uint8Array(0), given)
      const decoded = decodeMemberExtension(bytes)
      bytes.fill(0)
      expect(decoded).toEqual(given)
    }
  })

  it('says whether the id of the ensemble is proposed', () => {
    const given = { ...extension, hasData: true, cluster: { ...cluster, isProposed: true } }
    expect(decodeMemberExtension(withExtension(new Uint8Array(0), given))).toEqual(given)
  })

  it('is absent from what Apache ZooKeeper sends, and where it is cut off', () => {
    const extended = withExtension(encodeLearnerInfo(info), extension)
    const unmarked = extended.slice()
    unmarked[LEARNER_INFO_BYTES + 5]!++
    for (const other of [
      unmarked,
      null,
      encodeLearnerInfo(info),
      extended.subarray(0, -1),
      new Uint8Array(60),
    ])
      expect(decodeMemberExtension(other, LEARNER_INFO_BYTES)).toBeUndefined()
  })
})

describe('feature levels', () => {
  const members = [
    { id: 3, release: 258, stored: { finalized: 1, proposed: 515 } },
    { id: 2 ** 40, release: 0, stored: { finalized: 0, proposed: 0 } },
  ]

  it('survive encoding, those of a leader and those that a learner reports', () => {
    const state = { finalized: 258, proposed: 65_535 }
    expect(decodeFeatureState(encodeFeatureState(state))).toEqual(state)
    for (const some of [members, []]) expect(decodeFeatureReport(encodeFeatureReport(some))).toEqual(some)
  })

  it('are reported of at most 1,000 servers', () => {
    const many = Array.from({ length: 1001 }, (_, id) => ({ ...members[0]!, id }))
    expect(decodeFeatureReport(encodeFeatureReport(many))).toHaveLength(1000)
  })

  it.each([
    ['no data', null],
    ['data that are cut off', encodeFeatureReport(members).subarray(0, -1)],
    ['a negative number of servers', Uint8Array.of(255, 255, 255, 255)],
    ['more servers than any ensemble has', Uint8Array.of(127, 0, 0, 0)],
  ])('with %s are refused', (_, data) => {
    expect(() => decodeFeatureReport(data)).toThrow(ProtocolError)
    if (data === null || data.length < 4) expect(() => decodeFeatureState(data)).toThrow(ProtocolError)
  })
})

describe('a request to stop', () => {
  it('survives encoding, as its answer', () => {
    const request = { number: 7, forMs: 120_000 }
    expect(decodeStopPermitRequest(encodeStopPermitRequest(request))).toEqual(request)
    const answer = { number: 7, isGranted: false, missing: [3], stopping: [1, 2] }
    expect(decodeStopPermitAnswer(encodeStopPermitAnswer(answer))).toEqual(answer)
  })

  it.each([
    ['a negative number', encodeStopPermitRequest({ number: -1, forMs: 0 })],
    ['a time that is too long', encodeStopPermitRequest({ number: 1, forMs: MAX_STOP_PERMIT_MS + 1 })],
    ['a negative time', encodeStopPermitRequest({ number: 1, forMs: -1 })],
    ['no data', null],
    ['data that are cut off', encodeStopPermitRequest({ number: 1, forMs: 0 }).subarray(0, 10)],
  ])('with %s is refused', (_, data) => {
    expect(() => decodeStopPermitRequest(data)).toThrow(ProtocolError)
  })

  it('may be for no time or the longest time, of number 0 or more', () => {
    for (const request of [
      { number: 0, forMs: 0 },
      { number: 1, forMs: MAX_STOP_PERMIT_MS },
    ])
      expect(decodeStopPermitRequest(encodeStopPermitRequest(request))).toEqual(request)
  })

  it('is answered with at most 1,000 servers, and no fewer than none', () => {
    const answerOf = (count: number): Uint8Array =>
      encodeStopPermitAnswer({
        number: 1,
        isGranted: true,
        missing: [],
        stopping: Array.from({ length: count }, (_, id) => id),
      })
    expect(decodeStopPermitAnswer(answerOf(1000)).stopping).toHaveLength(1000)
    expect(() => decodeStopPermitAnswer(answerOf(1001))).toThrow(ProtocolError)
    const negative = answerOf(0)
    negative.fill(255, 9, 13)
    expect(() => decodeStopPermitAnswer(negative)).toThrow(ProtocolError)
  })

  it('refuses an answer with more servers than any ensemble has', () => {
    const answer = encodeStopPermitAnswer({ number: 1, isGranted: true, missing: [], stopping: [] })
    answer[9] = 127
    expect(() => decodeStopPermitAnswer(answer)).toThrow(ProtocolError)
  })
})

describe('a packet splitter', () => {
  it('emits the same packets for any chunks', () => {
    fc.assert(
      fc.property(
        fc.array(anyPacket, { maxLength: 6 }),
        fc.array(fc.nat(9), { minLength: 1 }),
        (packets, sizes) => {
          const stream = Uint8Array.from(packets.flatMap((packet) => [...encode(packet)]))
          const chunks: Uint8Array[] = []
          for (let at = 0, i = 0; at < stream.length; i++) {
            const size = sizes[i % sizes.length]! + 1
            chunks.push(stream.slice(at, at + size))
            at += size
          }
          expect(cut(chunks)).toEqual(packets)
        },
      ),
    )
  })

  it('emits the same packets for two chunks, divided at any byte', () => {
    const packets = cut([bytesOf(captured.map(([, hex]) => hex).join(''))])
    const stream = bytesOf(captured.map(([, hex]) => hex).join(''))
    for (let at = 0; at <= stream.length; at++)
      expect(cut([stream.slice(0, at), stream.slice(at)])).toEqual(packets)
  })

  it('keeps what it receives while it is paused, and needs no chunk after the call that passes it', () => {
    const stream = bytesOf(captured.map(([, hex]) => hex).join(''))
    const packets = cut([stream])
    for (const size of [1, 7, stream.length]) {
      const emitted: QuorumPacket[] = []
      const splitter: PacketSplitter = new PacketSplitter({
        maxData: 100,
        packet: (type, zxid, data, auth) => {
          emitted.push({ type, zxid, data: data && data.slice(), auth })
          splitter.pause()
        },
      })
      for (let at = 0; at < stream.length; at += size) {
        const chunk = stream.slice(at, at + size)
        splitter.push(chunk)
        chunk.fill(0xff)
      }
      while (emitted.length < packets.length) {
        const before = emitted.length
        splitter.resume()
        expect(emitted.length).toBe(before + 1)
      }
      expect(emitted).toEqual(packets)
    }
  })

  it('passes the bytes after SNAP to raw until the end of the snapshot', () => {
    const snapshot = bytesOf('00000000 00000001 42656e57617348657265')
    const stream = Uint8Array.from([...bytesOf(captured[6]![1]), ...snapshot, ...bytesOf(captured[7]![1])])
    for (let size = 1; size <= stream.length; size++) {
      let taken = ''
      const types: number[] = []
      const splitter = new PacketSplitter({
        maxData: 100,
        packet: (type) => types.push(type),
        raw: (bytes) => {
          const missing = snapshot.length - taken.length / 2
          taken += hexOf(bytes.subarray(0, missing))
          return bytes.length >= missing ? missing : -1
        },
      })
      for (let at = 0; at < stream.length; at += size) splitter.push(stream.subarray(at, at + size))
      expect(taken).toBe(hexOf(snapshot))
      expect(types).toEqual([PacketType.snap, PacketType.ack])
    }
  })

  it('rejects an invalid length before any memory is allocated for it', () => {
    const head = '00000002 0000000100000002'
    for (const rest of [
      '7fffffff',
      '00000065',
      'fffffffe',
      '00000000 7fffffff',
      '00000000 fffffffe',
      '00000000 00000001 7fffffff',
    ]) {
      const splitter = new PacketSplitter({ maxData: 100, packet: () => expect.unreachable() })
      const bytes = bytesOf(head + rest)
      expect(() => {
        for (const byte of bytes) splitter.push(Uint8Array.of(byte))
      }, rest).toThrow(ProtocolError)
      expect(splitter.bufferedBytes).toBe(0)
      splitter.push(bytesOf(captured[4]![1]))
    }
  })

  it('allocates for a packet of a claimed length no more than twice the bytes received', () => {
    const splitter = new PacketSplitter({ maxData: 1 << 30, packet: () => expect.unreachable() })
    let largest = 0
    const construct = (target: Uint8ArrayConstructor, args: [number]): Uint8Array => {
      if (typeof args[0] === 'number') largest = Math.max(largest, args[0])
      return Reflect.construct(target, args) as Uint8Array
    }
    vi.stubGlobal('Uint8Array', new Proxy(Uint8Array, { construct }))
    try {
      splitter.push(bytesOf('00000002 0000000100000002 40000000 abcdef'))
      for (let i = 0; i < 1000; i++) splitter.push(Uint8Array.of(i))
    } finally {
      vi.unstubAllGlobals()
    }
    expect(largest).toBeGreaterThan(1000)
    expect(largest).toBeLessThan(2100)
    expect(splitter.bufferedBytes).toBe(1019)
  })

  it('measures and copies the identities of a packet that arrives in two chunks a few times, not for each of them', () => {
    const identities = Array.from({ length: 1000 }, () => ({ scheme: 'x'.repeat(500), id: '' }))
    const bytes = encode({ type: PacketType.request, zxid: -1, data: null, auth: identities })
    const measured = vi.spyOn(Reader.prototype, 'int')
    const copied = vi.spyOn(Uint8Array.prototype, 'set')
    try {
      expect(cut([bytes.subarray(0, 16), bytes.subarray(16)])[0]!.auth).toEqual(identities)
      expect(measured.mock.calls.length).toBeLessThan(10_000)
      const total = copied.mock.calls.reduce((sum, [part]) => sum + part.length, 0)
      expect(total).toBeLessThan(5 * bytes.length)
    } finally {
      measured.mockRestore()
      copied.mockRestore()
    }
  })

  it('gives each packet its own identities, and the same list to those that follow each other with the same ones', () => {
    const one = [{ scheme: 'ip', id: '10.0.0.1' }]
    const two = [
      { scheme: 'ip', id: '10.0.0.12' },
      { scheme: 'digest', id: 'a:b' },
    ]
    const long = [{ scheme: 'digest', id: 'x'.repeat(300) }]
    const lists = [[], one, one, null, one, two, two, one, long, long, one, [], two.slice(0, 1)]
    const bytes = lists.map((auth) => [...encode({ type: PacketType.request, zxid: -1, data: null, auth })])
    const read = cut([Uint8Array.from(bytes.flat())]).map(({ auth }) => auth)
    expect(read).toEqual(lists)
    expect(read[2]).toBe(read[1])
    expect(read[4]).toBe(read[1])
    expect(read[6]).toBe(read[5])
    expect(read[9]).not.toBe(read[8])
  })

  it('compares identities with those of the last packet also where the bytes of the caller have changed since', () => {
    const read: unknown[] = []
    const splitter = new PacketSplitter({
      maxData: 100,
      packet: (_type, _zxid, _data, auth) => read.push(auth),
    })
    const lists = ['10.0.0.1', '10.0.0.2'].map((id) => [{ scheme: 'ip', id }])
    const chunk = new Uint8Array(200)
    for (const auth of lists) {
      const bytes = encode({ type: PacketType.request, zxid: -1, data: null, auth })
      chunk.set(bytes)
      splitter.push(chunk.subarray(0, bytes.length))
    }
    expect(read).toEqual(lists)
  })

  it('throws nothing but a ProtocolError for random bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), (chunks) => {
        const splitter = new PacketSplitter({ maxData: 50, packet: () => {} })
        try {
          for (const chunk of chunks) splitter.push(chunk)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError)
        }
        expect(splitter.bufferedBytes).toBeLessThan(2000)
      }),
    )
  })

  it('rejects a snapshot that takes more bytes than there are, or fewer than none', () => {
    const snap = bytesOf(captured[6]![1])
    for (const taken of [-2, 3]) {
      const splitter = new PacketSplitter({ maxData: 100, packet: () => {}, raw: () => taken })
      expect(() => splitter.push(Uint8Array.of(...snap, 1, 2))).toThrow(
        `Expected a snapshot to take up to 2 bytes, got ${taken}`,
      )
    }
  })

  it('takes a snapshot after SNAP only', () => {
    const types: number[] = []
    const splitter = new PacketSplitter({
      maxData: 100,
      packet: (type) => types.push(type),
      raw: () => 2,
    })
    const [snap, ack] = [captured[6]![1], captured[7]![1]]
    splitter.push(bytesOf(`${ack}${snap}abcd${ack}${ack}`))
    expect(types).toEqual([3, 15, 3, 3])
  })

  it('takes data of the largest size, and rejects identities of more than 1 MiB together', () => {
    const data = new Uint8Array(100)
    expect(cut([encode({ type: 2, zxid: 1, data, auth: null })], 100)[0]!.data).toEqual(data)
    const half = (1 << 19) + 8
    const packet = new Uint8Array(28 + half)
    const view = new DataView(packet.buffer)
    view.setInt32(16, 1)
    view.setInt32(20, half)
    view.setInt32(24 + half, half)
    const splitter = new PacketSplitter({ maxData: 100, packet: () => expect.unreachable() })
    expect(() => splitter.push(packet)).toThrow(ProtocolError)
  })

  it('emits nothing after stop, also within a chunk', () => {
    const types: number[] = []
    const splitter = new PacketSplitter({
      maxData: 100,
      packet: (type) => {
        types.push(type)
        splitter.stop()
      },
    })
    splitter.push(bytesOf(captured[4]![1] + captured[5]![1]))
    splitter.push(bytesOf(captured[5]![1]))
    expect(types).toEqual([PacketType.diff])
  })

  it('rejects a zxid that is not exact as a number', () => {
    const bytes = bytesOf('00000003 7fffffffffffffff ffffffff ffffffff')
    expect(() => cut([bytes])).toThrow(ProtocolError)
  })
})

it('the size in a SNAP packet is read where it is a number of nodes, and left out otherwise', () => {
  expect(decodeSnapshotInfo(encodeSnapshotInfo(10_000_000_000))).toBe(10_000_000_000)
  const negative = new Uint8Array(8).fill(255)
  for (const data of [null, new Uint8Array(0), new Uint8Array(7), new Uint8Array(8), negative])
    expect(decodeSnapshotInfo(data)).toBeUndefined()
})
