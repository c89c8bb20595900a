import { makeZxid } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { PacketType } from './packets.ts'
import {
  encodeConfigurationText,
  encodeDesignatedLeader,
  encodeInformAndActivate,
  encodeLeaderInfo,
} from './payloads.ts'
import { LearnerHarness } from './testing/learner-harness.ts'
import { makeReconfig } from './testing/txn.ts'

const z = makeZxid
const text = (version: string): string =>
  `server.1=h:1:2:participant\nserver.2=h:3:4:participant\nversion=${version}`
const leaves = expect.stringMatching(/^leave: /) as string

describe('a learner that meets a leader', () => {
  it('goes through the steps of a first synchronisation', () => {
    const desk = new LearnerHarness()
    desk.step({ type: 'connected' })
    expect(desk.takeLog()).toEqual(['followerInfo 0'])
    desk.receive('leaderInfo', z(1, 0), encodeLeaderInfo())
    expect(desk.takeLog()).toEqual(['store acceptedEpoch 1'])
    desk.step({ type: 'stored', what: 'acceptedEpoch', epoch: 1 })
    expect(desk.takeLog()).toEqual(['ackEpoch 0 0'])
    desk.receive('diff', 0)
    desk.receive('newLeader', z(1, 0))
    expect(desk.takeLog()).toEqual(['harden'])
    desk.step({ type: 'hardened' })
    expect(desk.takeLog()).toEqual(['store currentEpoch 1'])
    desk.step({ type: 'stored', what: 'currentEpoch', epoch: 1 })
    expect(desk.takeLog()).toEqual(['ack 100000000'])
    desk.receive('upToDate')
    expect(desk.takeLog()).toEqual(['ack 100000000', 'serve 1'])
  })

  it('tells the epoch that it has accepted, not its last transaction', () => {
    const desk = new LearnerHarness({ acceptedEpoch: 3, currentEpoch: 2, lastZxid: z(2, 9), observer: true })
    desk.step({ type: 'connected' })
    expect(desk.takeLog()).toEqual(['observerInfo 300000000'])
  })

  it('promises an epoch once: when it has accepted it already, it says that this is no promise', () => {
    const desk = new LearnerHarness({ acceptedEpoch: 3, currentEpoch: 2, lastZxid: z(2, 9) })
    desk.step({ type: 'connected' })
    desk.receive('leaderInfo', z(3, 0), encodeLeaderInfo())
    expect(desk.takeLog()).toEqual(['followerInfo 300000000', 'ackEpoch 200000009 -1'])
  })

  it.each([
    ['an epoch before the one it has accepted', 'leaderInfo', z(2, 0), encodeLeaderInfo()],
    ['an epoch that is a transaction', 'leaderInfo', z(4, 1), encodeLeaderInfo()],
    ['a protocol that does not know epochs', 'leaderInfo', z(4, 0), Uint8Array.of(0, 0, 0, 1)],
    ['no protocol at all', 'leaderInfo', z(4, 0), null],
    ['NEWLEADER at once, as releases before 3.4 do', 'newLeader', z(4, 0), null],
  ] as const)('leaves for %s', (_what, type, zxid, data) => {
    const desk = new LearnerHarness({ acceptedEpoch: 3 })
    desk.step({ type: 'connected' })
    desk.takeLog()
    desk.receive(type, zxid, data)
    expect(desk.takeLog()).toEqual([leaves])
    desk.receive('leaderInfo', z(9, 0), encodeLeaderInfo())
    expect(desk.takeLog()).toEqual([])
  })

  it.each(['proposal', 'commit', 'newLeader', 'upToDate', 'sync', 'leaderInfo'] as const)(
    'leaves, and ends no process, when %s comes before the way of synchronisation',
    (type) => {
      const desk = new LearnerHarness()
      desk.acceptEpoch(1)
      desk.receive(type, z(1, 0))
      expect(desk.takeLog()).toEqual([leaves])
    },
  )
})

describe('history that comes in', () => {
  it('is logged and applied as it is committed, and durable before the epoch and the ACK', () => {
    const desk = new LearnerHarness({ lastZxid: z(1, 4), currentEpoch: 1, acceptedEpoch: 1 })
    desk.acceptEpoch(2)
    desk.receive('diff', z(1, 6))
    for (const zxid of [z(1, 5), z(1, 6)]) {
      desk.propose(zxid)
      desk.commit(zxid)
    }
    expect(desk.takeLog()).toEqual(['log 100000005', 'apply 100000005', 'log 100000006', 'apply 100000006'])
    desk.learner.markDurable(z(1, 6))
    desk.receive('newLeader', z(2, 0))
    expect(desk.takeLog()).toEqual(['harden'])
  })

  it('leaves what is only proposed alone until UPTODATE, and acknowledges it then', () => {
    const desk = new LearnerHarness({ acceptedEpoch: 1 })
    desk.acceptEpoch(1)
    desk.receive('diff')
    desk.propose(z(1, 1), z(1, 2))
    desk.commit(z(1, 1))
    desk.ackNewLeader(1)
    desk.propose(z(1, 3))
    desk.commit(z(1, 2))
    desk.receive('ping', z(1, 3))
    expect(desk.takeLog()).toEqual([
      'log 100000001',
      'apply 100000001',
      'harden',
      'store currentEpoch 1',
      'ack 100000000',
    ])
    desk.receive('upToDate')
    expect(desk.takeLog()).toEqual([
      'ack 100000000',
      'log 100000002',
      'log 100000003',
      'apply 100000002',
      'serve 1',
    ])
    desk.learner.markDurable(z(1, 1))
    expect(desk.takeLog()).toEqual([])
    desk.learner.markDurable(z(1, 3))
    expect(desk.takeLog()).toEqual(['ACK 100000002', 'ACK 100000003'])
    desk.commit(z(1, 3))
    expect(desk.takeLog()).toEqual(['apply 100000003'])
  })

  it('goes on at the next transaction or at the first one of a later epoch, without holes', () => {
    const last = z(1, 4)
    const begin = (): LearnerHarness => {
      const desk = new LearnerHarness({ lastZxid: last, acceptedEpoch: 1 })
      desk.acceptEpoch(4)
      desk.receive('diff')
      return desk
    }
    for (const zxid of [z(1, 5), z(2, 1), z(4, 1)]) {
      const desk = begin()
      desk.propose(zxid)
      expect(desk.takeLog(), zxid.toString(16)).toEqual([])
    }
    for (const zxid of [z(1, 4), z(1, 3), z(1, 6), z(2, 2), z(2, 0), z(5, 1)]) {
      const desk = begin()
      desk.propose(zxid)
      expect(desk.takeLog(), zxid.toString(16)).toEqual([leaves])
    }
  })

  it('is refused when a commit is not of the oldest proposal, before and after NEWLEADER', () => {
    for (const vouched of [false, true]) {
      const desk = new LearnerHarness()
      desk.acceptEpoch(1)
      desk.receive('diff')
      desk.propose(z(1, 1), z(1, 2))
      if (vouched) desk.ackNewLeader(1)
      desk.takeLog()
      desk.commit(z(1, 2))
      expect(desk.takeLog()).toEqual([leaves])
    }
  })

  it('as a snapshot contains what is not after it, and goes on behind it', () => {
    const desk = new LearnerHarness({ lastZxid: z(1, 9), acceptedEpoch: 1 })
    desk.acceptEpoch(2)
    desk.receive('snap', z(2, 3))
    for (const zxid of [z(2, 2), z(2, 3), z(2, 4)]) {
      desk.propose(zxid)
      desk.commit(zxid)
    }
    expect(desk.takeLog()).toEqual(['install 200000003', 'log 200000004', 'apply 200000004'])
  })

  it('is cut where the leader says, or else it is worth nothing', () => {
    const desk = new LearnerHarness({ lastZxid: z(1, 9), acceptedEpoch: 1 })
    desk.acceptEpoch(2)
    desk.receive('trunc', z(1, 7))
    expect(desk.takeLog()).toEqual(['truncate 100000007'])
    desk.step({ type: 'truncated', lastZxid: z(1, 7) })
    desk.propose(z(1, 8))
    expect(desk.takeLog()).toEqual([])
    desk.step({ type: 'truncated', lastZxid: z(1, 8) })
    expect(desk.takeLog()).toEqual([
      'discard: history was to be cut at 100000007 and ended at 100000008',
      leaves,
    ])
  })

  it('is not cut where it has not come to', () => {
    const desk = new LearnerHarness({ lastZxid: z(1, 9), acceptedEpoch: 1 })
    desk.acceptEpoch(2)
    desk.receive('trunc', z(1, 10))
    expect(desk.takeLog()).toEqual([leaves])
  })

  it('is only taken as a whole by a server that does not trust its data', () => {
    for (const type of ['diff', 'trunc'] as const) {
      const desk = new LearnerHarness({ lastZxid: -1 })
      desk.acceptEpoch(1)
      desk.receive(type, 0)
      expect(desk.takeLog()).toEqual([leaves])
    }
    const desk = new LearnerHarness({ lastZxid: -1 })
    desk.acceptEpoch(1)
    desk.receive('snap', 0)
    expect(desk.takeLog()).toEqual(['install 0'])
  })

  it('is promised as it is on disk by a server that asks for everything, which it does behind its promise', () => {
    const given = { lastZxid: z(1, 9), currentEpoch: 1, acceptedEpoch: 1, asksForAll: true }
    const desk = new LearnerHarness(given)
    desk.step({ type: 'connected' })
    desk.receive('leaderInfo', z(2, 0), encodeLeaderInfo())
    desk.takeLog()
    // A leader that has less must not take this for a promise of somebody who has nothing.
    desk.step({ type: 'stored', what: 'acceptedEpoch', epoch: 2 })
    expect(desk.takeLog()).toEqual(['ackEpoch 100000009 1'])
    desk.receive('ping')
    desk.receive('diff', z(1, 9))
    expect(desk.takeLog()).toEqual([leaves])
    const again = new LearnerHarness({ ...given, acceptedEpoch: 2 })
    again.step({ type: 'connected' })
    again.receive('leaderInfo', z(2, 0), encodeLeaderInfo())
    expect(again.takeLog()).toEqual(['followerInfo 200000000', 'ackEpoch 0 -1'])
    again.receive('diff', z(1, 9))
    again.propose(z(1, 1))
    expect(again.takeLog()).toEqual([])
  })

  it('is taken at once by a server that asks for everything when all of it comes anyway', () => {
    const desk = new LearnerHarness({
      lastZxid: z(1, 9),
      currentEpoch: 1,
      acceptedEpoch: 1,
      needsFullSync: true,
    })
    desk.acceptEpoch(2)
    desk.receive('snap', z(1, 9))
    expect(desk.takeLog()).toEqual(['install 100000009'])
  })

  it('is not vouched for to a leader of another epoch, nor twice', () => {
    const other = new LearnerHarness()
    other.acceptEpoch(2)
    other.receive('diff')
    other.receive('newLeader', z(1, 0))
    expect(other.takeLog()).toEqual([leaves])
    const twice = new LearnerHarness()
    twice.acceptEpoch(2)
    twice.receive('diff')
    twice.ackNewLeader(2)
    twice.takeLog()
    twice.receive('newLeader', z(2, 0))
    expect(twice.takeLog()).toEqual([leaves])
  })

  it('is brought without an answer to PINGs, which the leader counts only once it has sent UPTODATE', () => {
    const desk = new LearnerHarness()
    desk.acceptEpoch(1)
    desk.receive('ping')
    desk.receive('diff')
    desk.receive('ping')
    expect(desk.takeLog()).toEqual([])
    desk.ackNewLeader(1)
    desk.takeLog()
    desk.receive('ping')
    expect(desk.takeLog()).toEqual([])
    desk.receive('upToDate')
    desk.takeLog()
    desk.receive('ping', z(1, 0))
    expect(desk.takeLog()).toEqual(['pong 100000000'])
  })

  it('does not make it serve before it has vouched for it', () => {
    const early = new LearnerHarness()
    early.acceptEpoch(1)
    early.receive('diff')
    early.receive('upToDate')
    expect(early.takeLog()).toEqual([leaves])
    const hasty = new LearnerHarness()
    hasty.acceptEpoch(1)
    hasty.receive('diff')
    hasty.receive('newLeader', z(1, 0))
    hasty.step({ type: 'hardened' })
    hasty.takeLog()
    hasty.receive('upToDate')
    expect(hasty.takeLog()).toEqual([leaves])
  })

  it('means nothing any more when a transaction did not give the tree that it should', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.step({ type: 'diverged', zxid: z(1, 1), reason: 'the digest of the tree is another' })
    expect(desk.takeLog()).toEqual([
      'discard: the digest of the tree is another, at 100000001',
      'leave: the digest of the tree is another, at 100000001',
    ])
  })
})

describe('a follower in step', () => {
  it('logs at once, acknowledges what is durable one by one, and applies what is committed', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.propose(z(1, 1), z(1, 2))
    expect(desk.takeLog()).toEqual(['log 100000001', 'log 100000002'])
    desk.commit(z(1, 1))
    desk.learner.markDurable(z(1, 2))
    desk.learner.markDurable(z(1, 2))
    expect(desk.takeLog()).toEqual(['apply 100000001', 'ACK 100000001', 'ACK 100000002'])
  })

  it.each([
    ['a commit of what is not the oldest proposal', (desk: LearnerHarness) => desk.commit(z(1, 2))],
    ['a commit without a proposal', (desk: LearnerHarness) => desk.commit(z(1, 1), z(1, 2), z(1, 3))],
    ['a proposal with a gap before it', (desk: LearnerHarness) => desk.propose(z(1, 4))],
    ['a proposal again', (desk: LearnerHarness) => desk.propose(z(1, 2))],
    ['a proposal of nothing', (desk: LearnerHarness) => desk.receive('proposal', z(1, 3), null)],
  ])('leaves for %s', (_what, act) => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.propose(z(1, 1), z(1, 2))
    act(desk)
    expect(desk.takeLog().at(-1)).toEqual(leaves)
  })

  it('answers PINGs, hands SYNC and REVALIDATE on, and ignores what means nothing', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.receive('ping', z(1, 7))
    desk.receive('sync', 0)
    desk.receive('revalidate', -1, new Uint8Array(9))
    desk.inform(z(1, 1))
    desk.receive('upToDate')
    desk.receive('diff')
    expect(desk.takeLog().slice(0, 3)).toEqual(['pong 100000007', 'deliver sync', 'deliver revalidate'])
    expect(desk.takeLog()).toEqual([])
    desk.propose(z(1, 1))
    expect(desk.takeLog()).toEqual(['log 100000001'])
  })

  it('gives no work to look through for what every write sends', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    const payload = new Uint8Array(40)
    const first = desk.learner.receive(PacketType.proposal, z(1, 1), payload)
    const second = desk.learner.receive(PacketType.commit, z(1, 1), null)
    expect([first.length, second.length]).toEqual([0, 0])
  })

  it('leaves a leader that is silent: after a while of waiting, or a shorter one in step', () => {
    const waiting = new LearnerHarness()
    waiting.acceptEpoch(1)
    waiting.ticks(10)
    expect(waiting.takeLog()).toEqual([])
    waiting.learner.heartbeat()
    waiting.ticks(10)
    expect(waiting.takeLog()).toEqual([])
    waiting.ticks(1)
    expect(waiting.takeLog()).toEqual([leaves])
    const inStep = new LearnerHarness()
    inStep.follow(1)
    inStep.ticks(5)
    inStep.receive('ping', 0)
    inStep.ticks(5)
    expect(inStep.takeLog()).toEqual(['pong 0'])
    inStep.ticks(1)
    expect(inStep.takeLog()).toEqual([leaves])
  })

  it('leaves when the connection is closed', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.step({ type: 'closed' }, { type: 'closed' })
    expect(desk.takeLog()).toEqual([leaves])
  })
})

describe('an observer', () => {
  const observer = (): LearnerHarness => new LearnerHarness({ observer: true })

  it('is brought up to date by either kind of packets, and makes it durable before it vouches', () => {
    const desk = observer()
    desk.acceptEpoch(1)
    desk.receive('diff')
    desk.propose(z(1, 1))
    desk.commit(z(1, 1))
    desk.inform(z(1, 2))
    desk.receive('newLeader', z(1, 0))
    expect(desk.takeLog()).toEqual([
      'log 100000001',
      'apply 100000001',
      'log 100000002',
      'apply 100000002',
      'harden',
    ])
  })

  it('keeps what comes before UPTODATE, and logs and applies what comes after, without an ACK', () => {
    const desk = observer()
    desk.acceptEpoch(1)
    desk.receive('diff')
    desk.ackNewLeader(1)
    desk.takeLog()
    desk.inform(z(1, 1))
    expect(desk.takeLog()).toEqual([])
    desk.receive('upToDate')
    expect(desk.takeLog()).toEqual(['ack 100000000', 'log 100000001', 'apply 100000001', 'serve 1'])
    desk.inform(z(1, 2))
    desk.learner.markDurable(z(1, 2))
    expect(desk.takeLog()).toEqual(['log 100000002', 'apply 100000002'])
    desk.inform(z(1, 4))
    expect(desk.takeLog()).toEqual([leaves])
  })

  it('ignores proposals and commits in step', () => {
    const desk = observer()
    desk.follow(1)
    desk.propose(z(1, 1))
    desk.commit(z(1, 1))
    expect(desk.takeLog()).toEqual([expect.stringMatching(/^warn/), expect.stringMatching(/^warn/)])
  })
})

describe('a change of the configuration', () => {
  const change = makeReconfig(z(1, 1), text('100000001'))

  it('is the one seen last when it is proposed, and in force when it is committed', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.receive('proposal', z(1, 1), change)
    expect(desk.takeLog()).toEqual(['last seen 100000001', 'log 100000001'])
    desk.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(2))
    expect(desk.takeLog()).toEqual(['apply 100000001', 'activate 100000001 led by 2'])
  })

  it('comes into force in its place, also during synchronisation and before UPTODATE', () => {
    const early = new LearnerHarness()
    early.acceptEpoch(1)
    early.receive('diff')
    early.receive('proposal', z(1, 1), change)
    early.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(1))
    expect(early.takeLog()).toEqual([
      'last seen 100000001',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 1',
    ])
    const waiting = new LearnerHarness()
    waiting.acceptEpoch(1)
    waiting.receive('diff')
    waiting.ackNewLeader(1)
    waiting.receive('proposal', z(1, 1), change)
    waiting.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(1))
    waiting.takeLog()
    waiting.receive('upToDate')
    expect(waiting.takeLog()).toEqual([
      'ack 100000000',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 1',
      'serve 1',
    ])
  })

  it('reaches observers with its transaction', () => {
    const desk = new LearnerHarness({ observer: true })
    desk.follow(1)
    desk.receive('informAndActivate', z(1, 1), encodeInformAndActivate(2, change))
    expect(desk.takeLog()).toEqual([
      'last seen 100000001',
      'log 100000001',
      'apply 100000001',
      'activate 100000001 led by 2',
    ])
  })

  it('that the leader had seen comes with NEWLEADER, and into force with UPTODATE', () => {
    const desk = new LearnerHarness()
    desk.acceptEpoch(1)
    desk.receive('diff')
    desk.receive('newLeader', z(1, 0), encodeConfigurationText(text('100000000')))
    desk.step({ type: 'hardened' }, { type: 'stored', what: 'currentEpoch', epoch: 1 })
    expect(desk.takeLog()).toEqual(['last seen 100000000', 'harden', 'store currentEpoch 1', 'ack 100000000'])
    desk.receive('upToDate')
    expect(desk.takeLog()).toEqual(['activate 100000000', 'ack 100000000', 'serve 1'])
  })

  it('that cannot be read ends the role', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.receive('proposal', z(1, 1), makeReconfig(z(1, 1), 'server.x=1'))
    expect(desk.takeLog()).toEqual([leaves])
  })

  it('that is none cannot come into force', () => {
    const desk = new LearnerHarness()
    desk.follow(1)
    desk.propose(z(1, 1))
    desk.receive('commitAndActivate', z(1, 1), encodeDesignatedLeader(2))
    expect(desk.takeLog().at(-1)).toEqual(leaves)
  })
})
