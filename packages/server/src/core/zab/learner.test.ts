import { MAX_EPOCH, makeZxid } from '@zabra/protocol'
import { describe, expect } from 'vitest'
import {
  encodeConfigurationText,
  encodeDesignatedLeader,
  encodeInformAndActivate,
  encodeLeaderInfo,
  decodeLearnerInfo,
  PROTOCOL_VERSION,
} from './payloads.ts'
import { LearnerHarness, it } from './testing/learner-harness.ts'
import { makeReconfig, makeTxn } from './testing/txn.ts'

const z = makeZxid
const text = (version: string): string =>
  `server.1=h:1:2:participant\nserver.2=h:3:4:participant\nversion=${version}`
const leaves = expect.stringMatching(/^leave: /) as string

describe('a learner that connects to a leader', () => {
  it('accepts the epoch, makes history durable, acknowledges NEWLEADER and serves', ({ harness }) => {
    const { learner } = harness
    expect([learner.phase, learner.epoch]).toEqual(['connecting', -1])
    expect(harness.step({ type: 'connected' }).takeLog()).toEqual(['followerInfo 0'])
    harness.receive('leaderInfo', z(1, 0), encodeLeaderInfo())
    expect(harness.takeLog()).toEqual(['store acceptedEpoch 1'])
    expect([learner.phase, learner.epoch]).toEqual(['discovery', 1])
    harness.step({ type: 'stored', what: 'acceptedEpoch', epoch: 2 })
    expect(harness.takeLog()).toEqual([])
    harness.step({ type: 'stored', what: 'acceptedEpoch', epoch: 1 })
    expect(harness.takeLog()).toEqual(['ackEpoch 0 0'])
    harness.step({ type: 'stored', what: 'acceptedEpoch', epoch: 1 }, { type: 'flushed' })
    expect([harness.takeLog(), learner.phase]).toEqual([[], 'synchronisation'])
    harness.receive('diff', 0)
    expect(harness.receive('newLeader', z(1, 0)).takeLog()).toEqual(['flush'])
    expect(harness.step({ type: 'flushed' }).takeLog()).toEqual(['store currentEpoch 1'])
    harness.step({ type: 'stored', what: 'currentEpoch', epoch: 2 })
    expect(harness.takeLog()).toEqual([])
    harness.step({ type: 'stored', what: 'currentEpoch', epoch: 1 })
    expect(harness.takeLog()).toEqual(['ack 100000000'])
    expect(harness.receive('upToDate').takeLog()).toEqual(['ack 100000000', 'serve 1'])
    harness.step({ type: 'flushed' }, { type: 'stored', what: 'currentEpoch', epoch: 1 })
    expect([harness.takeLog(), learner.phase]).toEqual([[], 'broadcast'])
  })

  it('says which server it is, and which configuration it has', () => {
    const { learner } = new LearnerHarness({ self: 4, configVersion: z(1, 7) }).step({ type: 'connected' })
    const work = learner.nextWork()
    expect(work?.do === 'send' && decodeLearnerInfo(work.packet.data)).toEqual({
      serverId: 4,
      protocolVersion: PROTOCOL_VERSION,
      configVersion: z(1, 7),
    })
  })

  it('follows a leader in the last epoch, and leaves one that sends its epoch twice', () => {
    const harness = new LearnerHarness().step({ type: 'connected' })
    harness.receive('leaderInfo', z(MAX_EPOCH - 1, 0), encodeLeaderInfo())
    expect(harness.takeLog()).toEqual(['followerInfo 0', `store acceptedEpoch ${MAX_EPOCH - 1}`])
    harness.receive('leaderInfo', z(MAX_EPOCH - 1, 0), encodeLeaderInfo())
    expect(harness.takeLog()).toEqual(['leave: got a second leaderInfo'])
  })

  it('does not leave for a defect of its own', ({ harness }) => {
    harness.step({ type: 'connected' }).takeLog()
    expect(() => harness.receive('leaderInfo', z(1, 0), {} as Uint8Array)).toThrow(TypeError)
    expect(harness.takeLog()).toEqual([])
  })

  it('sends its acceptedEpoch, not its last zxid', () => {
    const harness = new LearnerHarness({
      acceptedEpoch: 3,
      currentEpoch: 2,
      lastZxid: z(2, 9),
      observer: true,
    })
    expect(harness.step({ type: 'connected' }).takeLog()).toEqual(['observerInfo 300000000'])
  })

  it('acknowledges an epoch that it had accepted before with -1', () => {
    const harness = new LearnerHarness({ acceptedEpoch: 3, currentEpoch: 2, lastZxid: z(2, 9) })
    harness.step({ type: 'connected' }).receive('leaderInfo', z(3, 0), encodeLeaderInfo())
    expect(harness.takeLog()).toEqual(['followerInfo 300000000', 'ackEpoch 200000009 -1'])
  })

  it.each([
    ['an epoch before its accepted epoch', 'leaderInfo', z(2, 0), encodeLeaderInfo()],
    ['an epoch with a counter', 'leaderInfo', z(4, 1), encodeLeaderInfo()],
    ['an epoch after the last one', 'leaderInfo', z(MAX_EPOCH, 0), encodeLeaderInfo()],
    ['a protocol without epoch agreement', 'leaderInfo', z(4, 0), Uint8Array.of(0, 0, 0, 1)],
    ['a missing protocol version', 'leaderInfo', z(4, 0), null],
    ['NEWLEADER first, as sent by releases before 3.4', 'newLeader', z(4, 0), null],
    ['its epoch in another packet', 'newLeader', z(4, 0), encodeLeaderInfo()],
  ] as const)('leaves a leader that sends %s', (_what, type, zxid, data) => {
    const harness = new LearnerHarness({ acceptedEpoch: 3 }).step({ type: 'connected' })
    harness.takeLog()
    expect(harness.receive(type, zxid, data).takeLog()).toEqual([leaves])
    expect(harness.receive('leaderInfo', z(9, 0), encodeLeaderInfo()).takeLog()).toEqual([])
  })

  it('leaves a leader of an earlier epoch than it has accepted, and can follow it without a vote', () => {
    const harness = new LearnerHarness({ acceptedEpoch: 3, currentEpoch: 2 })
    harness.step({ type: 'connected' })
    harness.takeLog()
    harness.receive('leaderInfo', z(2, 0), encodeLeaderInfo())
    expect(harness.learner.nextWork()).toEqual({
      do: 'leave',
      reason: "the leader's epoch 2 is before the accepted epoch 3",
      earlierEpoch: 2,
    })
  })

  it('leaves a leader of an earlier epoch than that of its own history for good', () => {
    const harness = new LearnerHarness({
      acceptedEpoch: 5,
      currentEpoch: 5,
      observer: true,
      nonVotingEpoch: 1,
    })
    harness.step({ type: 'connected' })
    harness.takeLog()
    harness.receive('leaderInfo', z(1, 0), encodeLeaderInfo())
    expect(harness.learner.nextWork()).toEqual({
      do: 'leave',
      reason: expect.stringMatching(
        /epoch 1 is before epoch 5 of the history of this server.*zabra recover adopt/s,
      ),
    })
  })

  it.each(['proposal', 'commit', 'newLeader', 'upToDate', 'sync', 'leaderInfo'] as const)(
    'leaves a leader that sends %s before DIFF, TRUNC or SNAP',
    (type) => {
      const harness = new LearnerHarness().acceptEpoch(1)
      expect(harness.receive(type, z(1, 0)).takeLog()).toEqual([leaves])
    },
  )
})

describe('a voter that has accepted a later epoch than that of its leader', () => {
  const options = { acceptedEpoch: 7, currentEpoch: 5, observer: true, nonVotingEpoch: 6 }

  it('follows without a vote: accepts no epoch again and acknowledges no proposal', () => {
    const harness = new LearnerHarness({ ...options, lastZxid: z(5, 2) })
    harness.step({ type: 'connected' })
    harness.receive('leaderInfo', z(6, 0), encodeLeaderInfo())
    expect(harness.takeLog()).toEqual(['observerInfo 700000000', 'ackEpoch 500000002 -1'])
    harness.receive('diff', z(6, 1))
    harness.propose(z(6, 1))
    harness.commit(z(6, 1))
    harness.ackNewLeader(6)
    harness.receive('upToDate')
    harness.inform(z(6, 2))
    harness.markDurable(z(6, 2))
    expect(harness.takeLog()).toEqual([
      'log 600000001',
      'apply 600000001',
      'flush',
      'store currentEpoch 6',
      'ack 600000000',
      'ack 600000000',
      'serve 6',
      'log 600000002',
      'apply 600000002',
    ])
  })

  it('leaves a leader that is no longer established in the epoch of the election', () => {
    const harness = new LearnerHarness({ ...options, nonVotingEpoch: 5 })
    harness.step({ type: 'connected' })
    harness.takeLog()
    harness.receive('leaderInfo', z(6, 0), encodeLeaderInfo())
    expect(harness.takeLog()).toEqual([leaves])
  })

  it.each(['trunc', 'snap'] as const)(
    'keeps what it has acknowledged in that epoch, whatever %s says',
    (type) => {
      const harness = new LearnerHarness({ ...options, currentEpoch: 6, lastZxid: z(6, 9) })
      harness.step({ type: 'connected' })
      harness.receive('leaderInfo', z(6, 0), encodeLeaderInfo())
      harness.takeLog()
      harness.receive(type, z(6, 8))
      expect(harness.takeLog()).toEqual([leaves])
    },
  )

  it('takes a snapshot that ends with what it has acknowledged, and no PING for the beginning of history', () => {
    const harness = new LearnerHarness({ ...options, currentEpoch: 6, lastZxid: z(6, 9) })
    harness.step({ type: 'connected' })
    harness.receive('leaderInfo', z(6, 0), encodeLeaderInfo())
    harness.takeLog()
    expect(harness.receive('ping', z(6, 8)).takeLog()).toEqual([])
    expect(harness.receive('snap', z(6, 9)).takeLog()).toEqual(['install 600000009'])
  })

  it('removes what no later leader had: transactions of an earlier epoch', () => {
    const harness = new LearnerHarness({ ...options, lastZxid: z(5, 9) })
    harness.step({ type: 'connected' })
    harness.receive('leaderInfo', z(6, 0), encodeLeaderInfo())
    harness.takeLog()
    harness.receive('trunc', z(5, 8))
    expect(harness.takeLog()).toEqual(['truncate 500000008'])
  })
})

describe('the history from a leader', () => {
  it('is logged and applied when it is committed, and durable before epoch and ACK', () => {
    const harness = new LearnerHarness({ lastZxid: z(1, 4), currentEpoch: 1, acceptedEpoch: 1 })
    harness.acceptEpoch(2).receive('diff', z(1, 6))
    for (const zxid of [z(1, 5), z(1, 6)]) harness.propose(zxid).commit(zxid)
    expect(harness.takeLog()).toEqual([
      'log 100000005',
      'apply 100000005',
      'log 100000006',
      'apply 100000006',
    ])
    harness.markDurable(z(1, 6))
    expect(harness.receive('newLeader', z(2, 0)).takeLog()).toEqual(['flush'])
  })

  it('is logged and acknowledged after UPTODATE where it was not committed before NEWLEADER', () => {
    const harness = new LearnerHarness({ acceptedEpoch: 1 }).acceptEpoch(1).receive('diff')
    harness.propose(z(1, 1), z(1, 2)).commit(z(1, 1)).ackNewLeader(1)
    harness.propose(z(1, 3)).commit(z(1, 2))
    expect(harness.receive('ping', z(1, 3)).takeLog()).toEqual([
      'log 100000001',
      'apply 100000001',
      'flush',
      'store currentEpoch 1',
      'ack 100000000',
    ])
    expect(harness.receive('upToDate').takeLog()).toEqual([
      'ack 100000000',
      'log 100000002',
      'log 100000003',
      'apply 100000002',
      'serve 1',
    ])
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual([])
    expect(harness.markDurable(z(1, 3)).takeLog()).toEqual(['ACK 100000002', 'ACK 100000003'])
    expect(harness.commit(z(1, 3)).takeLog()).toEqual(['apply 100000003'])
  })

  it('continues with the next transaction or the first of a later epoch, without gaps', () => {
    const last = z(1, 4)
    const begin = (): LearnerHarness => {
      const harness = new LearnerHarness({ lastZxid: last, acceptedEpoch: 1 }).acceptEpoch(4)
      harness.receive('diff')
      return harness
    }
    for (const zxid of [z(1, 5), z(2, 1), z(4, 1)]) {
      const harness = begin()
      expect(harness.propose(zxid).takeLog(), zxid.toString(16)).toEqual([])
    }
    for (const zxid of [z(1, 4), z(1, 3), z(1, 6), z(2, 2), z(2, 0), z(5, 1)]) {
      const harness = begin()
      expect(harness.propose(zxid).takeLog(), zxid.toString(16)).toEqual([leaves])
    }
  })

  it('is rejected when a commit is not for the oldest proposal, before and after NEWLEADER', () => {
    for (const isAfterNewLeader of [false, true]) {
      const harness = new LearnerHarness().acceptEpoch(1).receive('diff')
      harness.propose(z(1, 1), z(1, 2))
      if (isAfterNewLeader) harness.ackNewLeader(1)
      harness.takeLog()
      expect(harness.commit(z(1, 2)).takeLog()).toEqual([leaves])
    }
  })

  it('in a snapshot includes transactions up to its zxid, and continues after it', () => {
    const harness = new LearnerHarness({ lastZxid: z(1, 9), acceptedEpoch: 1 }).acceptEpoch(2)
    harness.receive('snap', z(2, 3))
    for (const zxid of [z(2, 2), z(2, 3), z(2, 4)]) harness.propose(zxid).commit(zxid)
    expect(harness.takeLog()).toEqual(['install 200000003', 'log 200000004', 'apply 200000004'])
  })

  it('is truncated exactly at the zxid of TRUNC, or a full sync is requested', () => {
    const harness = new LearnerHarness({ lastZxid: z(1, 9), acceptedEpoch: 1 }).acceptEpoch(2)
    expect(harness.receive('trunc', z(1, 7)).takeLog()).toEqual(['truncate 100000007'])
    harness.step({ type: 'truncated', lastZxid: z(1, 7) })
    expect(harness.propose(z(1, 8)).takeLog()).toEqual([])
    expect(harness.step({ type: 'truncated', lastZxid: z(1, 8) }).takeLog()).toEqual([
      'request full sync: history was to be truncated to 100000007, but ends at 100000008',
      leaves,
    ])
  })

  it('is not truncated after its end, nor before its beginning', () => {
    for (const [zxid, result] of [
      [z(1, 10), leaves],
      [z(1, 9), 'truncate 100000009'],
      [0, 'truncate 0'],
      [-1, leaves],
    ] as const) {
      const harness = new LearnerHarness({ lastZxid: z(1, 9), acceptedEpoch: 1 }).acceptEpoch(2)
      expect(harness.receive('trunc', zxid).takeLog()).toEqual([result])
    }
    // Nor does a snapshot come from before the beginning, or a later epoch than that of the leader.
    for (const zxid of [-1, z(3, 1)])
      expect(new LearnerHarness().acceptEpoch(2).receive('snap', zxid).takeLog()).toEqual([leaves])
  })

  it('of epoch 0, which a standalone server has written, is taken from its first transaction on', () => {
    const harness = new LearnerHarness().acceptEpoch(1).receive('diff', 1)
    expect(harness.propose(1).commit(1).takeLog()).toEqual(['log 1', 'apply 1'])
  })

  it('of two epochs is logged with the zxids of both', () => {
    const harness = new LearnerHarness({ lastZxid: z(1, 4), acceptedEpoch: 1 }).acceptEpoch(2).receive('diff')
    harness.propose(z(1, 5), z(2, 1)).ackNewLeader(2).takeLog()
    expect(harness.receive('upToDate').takeLog('log')).toEqual(['log 100000005', 'log 200000001'])
  })

  it('contains no INFORM for a follower', ({ harness }) => {
    harness.acceptEpoch(1).receive('diff').inform(z(1, 1))
    const reconfig = encodeInformAndActivate(2, makeReconfig(z(1, 1), text('100000001')))
    expect(harness.receive('informAndActivate', z(1, 1), reconfig).takeLog()).toEqual([])
    expect(harness.propose(z(1, 1)).commit(z(1, 1)).takeLog('log')).toEqual(['log 100000001'])
  })

  it('is accepted only as a snapshot by a server that does not trust its data', () => {
    for (const type of ['diff', 'trunc'] as const) {
      const harness = new LearnerHarness({ lastZxid: -1 }).acceptEpoch(1)
      expect(harness.receive(type, 0).takeLog()).toEqual([leaves])
    }
    const harness = new LearnerHarness({ lastZxid: -1 }).acceptEpoch(1)
    expect(harness.receive('snap', 0).takeLog()).toEqual(['install 0'])
  })

  it('is reported truthfully with the accepted epoch by a learner that needs a full sync, which it requests on reconnect', () => {
    const given = { lastZxid: z(1, 9), currentEpoch: 1, acceptedEpoch: 1, needsFullSync: true }
    const harness = new LearnerHarness(given).step({ type: 'connected' })
    harness.receive('leaderInfo', z(2, 0), encodeLeaderInfo()).takeLog()
    // A leader with less history must not count this as accepted by a server without history.
    harness.step({ type: 'stored', what: 'acceptedEpoch', epoch: 2 })
    expect(harness.takeLog()).toEqual(['ackEpoch 100000009 1'])
    expect(harness.receive('ping').takeLog()).toEqual([])
    harness.receive('diff', z(1, 9))
    expect(harness.learner.nextWork()).toMatchObject({ do: 'leave', reconnect: true })
    // A tree that is known to be wrong does not get right by a truncation.
    const ahead = new LearnerHarness(given).acceptEpoch(2).receive('trunc', z(1, 8))
    expect(ahead.learner.nextWork()).toMatchObject({ do: 'leave', reconnect: true })
    const again = new LearnerHarness({ ...given, acceptedEpoch: 2 }).step({ type: 'connected' })
    again.receive('leaderInfo', z(2, 0), encodeLeaderInfo())
    expect(again.takeLog()).toEqual(['followerInfo 200000000', 'ackEpoch 0 -1'])
    again.receive('diff', z(1, 9))
    expect(again.propose(z(1, 1)).takeLog()).toEqual([])
  })

  it('is accepted at once by a learner that needs a full sync when the leader sends a snapshot', () => {
    const harness = new LearnerHarness({
      lastZxid: z(1, 9),
      currentEpoch: 1,
      acceptedEpoch: 1,
      needsFullSync: true,
    })
    harness.acceptEpoch(2)
    expect(harness.receive('snap', z(1, 9)).takeLog()).toEqual(['install 100000009'])
  })

  it('is not acknowledged for NEWLEADER of another epoch, nor for a second NEWLEADER', () => {
    const other = new LearnerHarness().acceptEpoch(2).receive('diff')
    expect(other.receive('newLeader', z(1, 0)).takeLog()).toEqual([leaves])
    const twice = new LearnerHarness().acceptEpoch(2).receive('diff')
    twice.ackNewLeader(2).takeLog()
    expect(twice.receive('newLeader', z(2, 0)).takeLog()).toEqual([leaves])
  })

  it('is received without answers to PINGs, which begin after UPTODATE', ({ harness }) => {
    harness.acceptEpoch(1).receive('ping').receive('diff')
    expect(harness.receive('ping').takeLog()).toEqual([])
    harness.ackNewLeader(1).takeLog()
    expect(harness.receive('ping').takeLog()).toEqual([])
    harness.receive('upToDate').takeLog()
    expect(harness.receive('ping', z(1, 0)).takeLog()).toEqual(['pong 100000000'])
  })

  it('does not let the learner serve before it has acknowledged NEWLEADER', () => {
    const early = new LearnerHarness().acceptEpoch(1).receive('diff')
    expect(early.receive('upToDate').takeLog()).toEqual([leaves])
    const hasty = new LearnerHarness().acceptEpoch(1).receive('diff')
    hasty.receive('newLeader', z(1, 0))
    hasty.step({ type: 'flushed' }).takeLog()
    expect(hasty.receive('upToDate').takeLog()).toEqual([leaves])
  })

  it('is distrusted when the digest of the tree diverges', ({ harness }) => {
    harness.follow(1)
    harness.step({ type: 'diverged', zxid: z(1, 1), reason: 'the digest of the tree is another' })
    expect(harness.takeLog()).toEqual([
      'request full sync: the digest of the tree is another, at 100000001',
      'leave: the digest of the tree is another, at 100000001',
    ])
  })
})

describe('a synced follower', () => {
  it('logs proposals at once, acknowledges each when it is durable, and applies commits', ({ harness }) => {
    harness.follow(1)
    expect(harness.propose(z(1, 1), z(1, 2)).takeLog()).toEqual(['log 100000001', 'log 100000002'])
    harness.commit(z(1, 1)).markDurable(z(1, 2)).markDurable(z(1, 2))
    expect(harness.takeLog()).toEqual(['apply 100000001', 'ACK 100000001', 'ACK 100000002'])
    expect(harness.propose(z(1, 3)).markDurable(z(1, 3)).takeLog()).toEqual([
      'log 100000003',
      'ACK 100000003',
    ])
    expect(harness.markDurable(z(1, 3)).learner.nextWork()).toBeUndefined()
  })

  it.each([
    ['before', [z(1, 6), z(1, 7)], z(1, 8)],
    ['of an epoch before', [], z(2, 1)],
  ] as const)('acknowledges no transaction %s NEWLEADER, which confirms them', (_what, history, next) => {
    const epoch = Math.floor(next / 2 ** 32)
    const harness = new LearnerHarness({ acceptedEpoch: 1, lastZxid: z(1, 5) }).acceptEpoch(epoch)
    harness
      .receive('diff', z(1, 7))
      .propose(...history)
      .commit(...history)
    harness.ackNewLeader(epoch).receive('upToDate').takeLog()
    expect(harness.propose(next).markDurable(next).takeLog('ACK')).toEqual([`ACK ${next.toString(16)}`])
  })

  it('acknowledges no transaction of a snapshot, however many the epoch has', () => {
    const harness = new LearnerHarness({ acceptedEpoch: 1 }).acceptEpoch(1).receive('snap', z(1, 1_000_000))
    harness.ackNewLeader(1).receive('upToDate').takeLog()
    const next = z(1, 1_000_001)
    expect(harness.propose(next).markDurable(next).takeLog('ACK')).toEqual([`ACK ${next.toString(16)}`])
  })

  it('acknowledges nothing after it has left', ({ harness }) => {
    harness.follow(1).propose(z(1, 1)).step({ type: 'closed' }).takeLog()
    expect(harness.markDurable(z(1, 1)).takeLog()).toEqual([])
  })

  it.each([
    ['a commit that is not for the oldest proposal', (harness: LearnerHarness) => harness.commit(z(1, 2))],
    ['a commit without a proposal', (harness: LearnerHarness) => harness.commit(z(1, 1), z(1, 2), z(1, 3))],
    ['a proposal with a gap before it', (harness: LearnerHarness) => harness.propose(z(1, 4))],
    ['a repeated proposal', (harness: LearnerHarness) => harness.propose(z(1, 2))],
    ['a proposal without data', (harness: LearnerHarness) => harness.receive('proposal', z(1, 3), null)],
    [
      'a proposal of another transaction',
      (harness: LearnerHarness) => harness.receive('proposal', z(1, 3), makeTxn(z(1, 4), 1).payload),
    ],
    [
      'a proposal of a later release',
      (harness: LearnerHarness) => harness.receive('proposal', z(1, 3), makeTxn(z(1, 3), 1, 120).payload),
    ],
    [
      'a proposal that is cut short',
      (harness: LearnerHarness) =>
        harness.receive('proposal', z(1, 3), makeTxn(z(1, 3), 1).payload.subarray(0, 31)),
    ],
  ])('leaves on %s', (_what, act) => {
    const harness = new LearnerHarness().follow(1)
    harness.propose(z(1, 1), z(1, 2))
    act(harness)
    expect(harness.takeLog().at(-1)).toEqual(leaves)
  })

  it('answers PINGs, delivers SYNC and REVALIDATE, and ignores unexpected packets', ({ harness }) => {
    harness.follow(1).receive('ping', z(1, 7)).receive('sync', 0)
    harness.receive('revalidate', -1, new Uint8Array(9)).inform(z(1, 1))
    harness.receive('upToDate').receive('diff')
    expect(harness.takeLog().slice(0, 3)).toEqual(['pong 100000007', 'deliver sync', 'deliver revalidate'])
    expect(harness.takeLog()).toEqual([])
    expect(harness.propose(z(1, 1)).takeLog()).toEqual(['log 100000001'])
  })

  it('returns transactions that were received one after another as one item of work', ({ harness }) => {
    harness.follow(1)
    harness.propose(z(1, 1), z(1, 2), z(1, 3))
    harness.commit(z(1, 1), z(1, 2))
    harness.propose(z(1, 4))
    const { learner } = harness
    const works = Array.from({ length: 4 }, () => learner.nextWork())
    expect(works).toMatchObject([
      { do: 'append', first: z(1, 1), payloads: { length: 3 } },
      { do: 'commit', first: z(1, 1), payloads: { length: 2 } },
      { do: 'append', first: z(1, 4), payloads: { length: 1 } },
      undefined,
    ])
  })

  it('leaves a silent leader after initLimit before UPTODATE, and after syncLimit once synced', () => {
    const waiting = new LearnerHarness().acceptEpoch(1)
    expect(waiting.ticks(10).takeLog()).toEqual([])
    waiting.learner.heartbeat()
    expect(waiting.ticks(10).takeLog()).toEqual([])
    expect(waiting.ticks(1).takeLog()).toEqual([leaves])
    const synced = new LearnerHarness().follow(1)
    synced.ticks(5).receive('ping', 0)
    expect(synced.ticks(5).takeLog()).toEqual(['pong 0'])
    expect(synced.ticks(1).takeLog()).toEqual([leaves])
  })

  it('leaves when the connection is closed', ({ harness }) => {
    harness.follow(1)
    expect(harness.step({ type: 'closed' }, { type: 'closed' }).takeLog()).toEqual([leaves])
  })
})

describe('an observer', () => {
  const observer = (): LearnerHarness => new LearnerHarness({ observer: true })

  it('is synchronised by COMMIT or INFORM, and makes history durable before its ACK', () => {
    const harness = observer().acceptEpoch(1)
    harness.receive('diff').propose(z(1, 1)).commit(z(1, 1))
    harness.inform(z(1, 2))
    harness.receive('ping', z(1, 2))
    expect(harness.receive('newLeader', z(1, 0)).takeLog()).toEqual([
      'log 100000001',
      'apply 100000001',
      'log 100000002',
      'apply 100000002',
      'flush',
    ])
  })

  it('logs and applies transactions after UPTODATE, without an ACK', () => {
    const harness = observer().acceptEpoch(1)
    harness.receive('diff')
    harness.ackNewLeader(1).takeLog()
    expect(harness.inform(z(1, 1)).takeLog()).toEqual([])
    harness.receive('upToDate')
    expect(harness.takeLog()).toEqual(['ack 100000000', 'log 100000001', 'apply 100000001', 'serve 1'])
    harness.inform(z(1, 2))
    expect(harness.markDurable(z(1, 2)).takeLog()).toEqual(['log 100000002', 'apply 100000002'])
    expect(harness.inform(z(1, 4)).takeLog()).toEqual([leaves])
  })

  it('ignores proposals and commits once synced', () => {
    const harness = observer().follow(1)
    harness.propose(z(1, 1)).commit(z(1, 1))
    expect(harness.takeLog()).toEqual([expect.stringMatching(/^warn/), expect.stringMatching(/^warn/)])
  })
})

describe('a reconfig received by a learner', () => {
  const change = makeReconfig(z(1, 1), text('100000001'))

  it('is kept as the configuration seen last when it is proposed, and activated when it is committed', () => {
    const harness = new LearnerHarness().follow(1).receive('proposal', z(1, 1), change)
    expect(harness.takeLog()).toEqual(['last seen 100000001', 'log 100000001'])
    harness.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(2))
    expect(harness.takeLog()).toEqual(['apply 100000001', 'activate 100000001 led by 2'])
  })

  it('is activated in the order of the commits, also during synchronisation and before UPTODATE', () => {
    const early = new LearnerHarness().acceptEpoch(1).receive('diff')
    early.receive('proposal', z(1, 1), change)
    expect(early.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(1)).takeLog()).toEqual([
      'last seen 100000001',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 1',
    ])
    const waiting = new LearnerHarness().acceptEpoch(1).receive('diff').ackNewLeader(1)
    waiting.receive('proposal', z(1, 1), change)
    waiting.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(1)).takeLog()
    expect(waiting.receive('upToDate').takeLog()).toEqual([
      'ack 100000000',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 1',
      'serve 1',
    ])
  })

  it('is logged, applied and activated by an observer', () => {
    const harness = new LearnerHarness({ observer: true }).follow(1)
    harness.receive('informAndActivate', z(1, 1), encodeInformAndActivate(2, change))
    expect(harness.takeLog()).toEqual([
      'last seen 100000001',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 2',
    ])
  })

  it('is logged, applied and activated by an observer during synchronisation', () => {
    const harness = new LearnerHarness({ observer: true }).acceptEpoch(1).receive('diff')
    harness.receive('informAndActivate', z(1, 1), encodeInformAndActivate(2, change))
    expect(harness.takeLog()).toEqual([
      'last seen 100000001',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 2',
    ])
  })

  it('is kept when it comes with NEWLEADER, and activated at UPTODATE', ({ harness }) => {
    harness.acceptEpoch(1).receive('diff')
    harness.receive('newLeader', z(1, 0), encodeConfigurationText(text('100000000')))
    harness.step({ type: 'flushed' }, { type: 'stored', what: 'currentEpoch', epoch: 1 })
    expect(harness.takeLog()).toEqual([
      'last seen 100000000',
      'flush',
      'store currentEpoch 1',
      'ack 100000000',
    ])
    expect(harness.receive('upToDate').takeLog()).toEqual(['activate 100000000', 'ack 100000000', 'serve 1'])
  })

  it('ends the role if it is invalid', ({ harness }) => {
    harness.follow(1)
    harness.receive('proposal', z(1, 1), makeReconfig(z(1, 1), 'server.x=1'))
    expect(harness.takeLog()).toEqual([leaves])
  })

  it('ends the role if the transaction to be activated is no reconfig', ({ harness }) => {
    harness.follow(1).propose(z(1, 1))
    harness.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(2))
    expect(harness.takeLog().at(-1)).toEqual(leaves)
  })
})
