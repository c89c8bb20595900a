import { ManualClock } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { NO_CLUSTER, type ServerId } from '../core/quorum/index.ts'
import {
  decodeLeaderReportPacket,
  PacketType,
  type LeaderReportPacket,
  type LearnerReportPacket,
  type ReportOfMember,
} from '../core/zab/index.ts'
import { COLLECT_MS, RELAY_MS, ReportRounds, type ReportingLearner } from './report-rounds.ts'

const EXTENSION = { level: 1, sharesSecret: false, hasData: true, cluster: NO_CLUSTER }
const SELF = 9

/** A learner that keeps what it is sent. */
interface FakeLearner extends ReportingLearner {
  readonly sent: LeaderReportPacket[]
}

function learner(serverId: ServerId, facts: Partial<ReportingLearner> = {}): FakeLearner {
  const sent: LeaderReportPacket[] = []
  return {
    serverId,
    extension: EXTENSION,
    isUpToDate: true,
    send(type, _, data = null) {
      expect(type).toBe(PacketType.memberReport)
      sent.push(decodeLeaderReportPacket(data)!)
    },
    ...facts,
    sent,
  }
}

let clock: ManualClock
let learners: FakeLearner[]
let rounds: ReportRounds
let ownReports: number

beforeEach(() => {
  clock = new ManualClock()
  learners = [learner(1), learner(2)]
  ownReports = 0
  rounds = new ReportRounds({
    clock,
    collectMs: COLLECT_MS,
    learners: () => learners,
    isMember: (id) => id < 20,
    speaksFor: ({ serverId }, id) => serverId === 1 && id === 5,
    own: async () => [{ id: SELF, report: Uint8Array.of(SELF, ++ownReports), ageMs: 0 }],
  })
})

const advance = async (ms: number): Promise<void> => {
  clock.advance(ms)
  await clock.untilIdle()
}

async function ask(from: FakeLearner, number = 1): Promise<void> {
  rounds.receive(from, { kind: 'ask', number })
  await clock.untilIdle()
}

const packetOf = (number: number, id: ServerId, ...bytes: number[]): LearnerReportPacket => ({
  kind: 'report',
  number,
  members: [{ id, report: Uint8Array.from(bytes), ageMs: 0 }],
})

async function report(from: FakeLearner, ...bytes: number[]): Promise<void> {
  const { number } = from.sent.findLast(({ kind }) => kind === 'collect')!
  rounds.receive(from, packetOf(number, from.serverId, ...bytes))
  await clock.untilIdle()
}

const kinds = ({ sent }: FakeLearner): string[] => sent.map(({ kind }) => kind)
const answersOf = ({ sent }: FakeLearner): readonly (readonly ReportOfMember[])[] =>
  sent.flatMap((packet) => (packet.kind === 'answer' ? [packet.members] : []))
const shown = (members: readonly ReportOfMember[] | undefined): unknown =>
  members?.map((member) => [member.id, member.report === undefined ? member.reason : [...member.report]])

describe('a leader that is asked for reports', () => {
  it('asks each learner once, and answers with all reports and that of its own as soon as it has them', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    await ask(first, 77)
    expect(learners.map(kinds)).toEqual([['collect'], ['collect']])
    await report(first, 10)
    expect(kinds(first)).toEqual(['collect'])
    await advance(300)
    await report(second, 20)
    expect(kinds(second)).toEqual(['collect'])
    expect(first.sent.at(-1)).toMatchObject({ kind: 'answer', number: 77 })
    expect(shown(answersOf(first)[0])).toEqual([
      [SELF, [SELF, 1]],
      [1, [10]],
      [2, [20]],
    ])
    expect(answersOf(first)[0]!.map((member) => 'ageMs' in member && member.ageMs)).toEqual([300, 300, 0])
  })

  it('makes one answer for all that ask, each with the number of its own request', async () => {
    const sent: (Uint8Array | null | undefined)[] = []
    const numbers: number[] = []
    learners = [3, 4, 6].map((id) =>
      learner(id, {
        send(_type, _zxid, data) {
          const packet = decodeLeaderReportPacket(data!)!
          if (packet.kind === 'collect') return
          sent.push(data)
          numbers.push(packet.number)
          expect(shown(packet.members)).toContainEqual([SELF, [SELF, 1]])
        },
      }),
    )
    for (const [index, one] of learners.entries()) await ask(one, [7, 2 ** 40, -1][index])
    await advance(COLLECT_MS)
    expect(numbers).toEqual([7, 2 ** 40, -1])
    expect(new Set(sent).size).toBe(1)
  })

  it('sends nothing while no member asks', async () => {
    await advance(60_000)
    expect([ownReports, ...learners.map(({ sent }) => sent.length)]).toEqual([0, 0, 0])
  })

  it('waits a second for a learner that is silent, and says so', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    await ask(first)
    await report(first, 10)
    await advance(999)
    expect(answersOf(first)).toEqual([])
    await advance(1)
    expect(shown(answersOf(first)[0])).toEqual([
      [SELF, [SELF, 1]],
      [1, [10]],
      [2, 'silent'],
    ])
    // Too late.
    await report(second, 20)
    expect(answersOf(first)).toHaveLength(1)
  })

  it('does not wait for a learner whose connection is lost, which is not in the answer', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    await ask(first)
    await report(first, 10)
    rounds.remove(second)
    expect(shown(answersOf(first)[0])).toEqual([
      [SELF, [SELF, 1]],
      [1, [10]],
    ])
  })

  it('asks no server of Apache ZooKeeper, none that is being synchronized, and none that is no member', async () => {
    learners.push(learner(3, { extension: undefined }), learner(4, { isUpToDate: false }), learner(20))
    const [first, second, foreign, syncing, stranger] = learners as FakeLearner[]
    await ask(stranger!)
    // Answers would be held until it is up to date.
    await ask(syncing!)
    expect(kinds(first!)).toEqual([])
    await ask(first!)
    await report(first!, 10)
    await report(second!, 20)
    expect([foreign, syncing, stranger].map((one) => kinds(one!))).toEqual([[], [], []])
    expect(shown(answersOf(first!)[0])).toEqual([
      [3, 'foreign'],
      [4, 'syncing'],
      [SELF, [SELF, 1]],
      [1, [10]],
      [2, [20]],
    ])
  })

  it('answers those that ask during a round with it', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    const own: LeaderReportPacket[] = []
    await ask(first)
    await ask(second)
    rounds.askOwn(5, (answer) => own.push(answer))
    await report(first, 10)
    await report(second, 20)
    expect([first, second].map((one) => answersOf(one).length)).toEqual([1, 1])
    expect(own).toMatchObject([{ number: 5, members: answersOf(first)[0] }])
    expect(ownReports).toBe(1)
  })

  it('collects once a second and answers once a round, however often a learner asks', async () => {
    const [hostile, other] = learners as [FakeLearner, FakeLearner]
    for (let ms = 0; ms < 4900; ms += 50) {
      for (let number = 1; number <= 100; number++) rounds.receive(hostile, { kind: 'ask', number })
      await clock.untilIdle()
      for (const one of learners) if (kinds(one).at(-1) === 'collect') await report(one, 1)
      await advance(50)
    }
    expect(kinds(other).filter((kind) => kind === 'collect')).toHaveLength(5)
    expect(answersOf(hostile)).toHaveLength(5)
    expect(ownReports).toBe(5)
  })

  it('ignores reports that it has not asked for, and a second one', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    rounds.receive(first, packetOf(1, 1, 1))
    await ask(first)
    rounds.receive(first, packetOf(99, 1, 2))
    await report(first, 10)
    await report(first, 11)
    rounds.receive(learner(2), packetOf(1, 2, 3))
    await report(second, 20)
    expect(shown(answersOf(first)[0])).toEqual([
      [SELF, [SELF, 1]],
      [1, [10]],
      [2, [20]],
    ])
  })

  it('sends no answer once its role has ended', async () => {
    const [first] = learners as [FakeLearner]
    await ask(first)
    rounds.end()
    await report(first, 10)
    await ask(first, 2)
    await advance(10_000)
    expect(kinds(first)).toEqual(['collect'])
  })
})

describe('reports that are collected through a follower', () => {
  it('count for the observers behind it alone, with the ages that they have', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    const members: readonly ReportOfMember[] = [
      { id: 2, report: Uint8Array.of(0), ageMs: 0 },
      { id: 5, report: Uint8Array.of(5), ageMs: 400 },
      { id: 6, report: undefined, reason: 'silent' },
      { id: SELF, report: Uint8Array.of(0), ageMs: 0 },
      { id: 1, report: Uint8Array.of(10), ageMs: 0 },
    ]
    await ask(second)
    rounds.receive(first, { kind: 'report', number: 1, members })
    await advance(100)
    await report(second, 20)
    expect(answersOf(second)[0]).toEqual([
      { id: SELF, report: Uint8Array.of(SELF, 1), ageMs: 100 },
      { id: 5, report: Uint8Array.of(5), ageMs: 500 },
      { id: 1, report: Uint8Array.of(10), ageMs: 100 },
      { id: 2, report: Uint8Array.of(20), ageMs: 0 },
    ])
  })

  it('do not make up for what a learner does not say of itself', async () => {
    const [first, second] = learners as [FakeLearner, FakeLearner]
    await ask(second)
    await report(second, 20)
    rounds.receive(first, { kind: 'report', number: 1, members: [] })
    await advance(1000)
    expect(shown(answersOf(second)[0])).toEqual([
      [SELF, [SELF, 1]],
      [2, [20]],
      [1, 'silent'],
    ])
  })
})

describe('a follower that is asked by its observers', () => {
  const relay = (own: () => Promise<readonly ReportOfMember[] | undefined>): ReportRounds =>
    new ReportRounds({
      clock,
      collectMs: RELAY_MS,
      learners: () => [],
      isMember: () => true,
      speaksFor: () => false,
      own,
    })

  it('passes on what the leader answers', async () => {
    const fromLeader: readonly ReportOfMember[] = [
      { id: 1, report: undefined, reason: 'silent' },
      { id: 7, report: Uint8Array.of(7), ageMs: 400 },
    ]
    rounds = relay(async () => fromLeader)
    const [first, second] = learners as [FakeLearner, FakeLearner]
    await ask(first, 3)
    expect(first.sent).toEqual([{ kind: 'answer', number: 3, members: fromLeader }])
    await ask(second, 4)
    expect(second.sent).toEqual([])
    await advance(1000)
    expect(second.sent).toEqual([{ kind: 'answer', number: 4, members: fromLeader }])
  })

  it('gives no answer where the leader gives none, since members would seem to be away', async () => {
    const results = [undefined, []]
    rounds = relay(async () => results.shift())
    const [first] = learners as [FakeLearner]
    await ask(first)
    await advance(10_000)
    expect(first.sent).toEqual([])
    await ask(first, 2)
    expect(kinds(first)).toEqual(['answer'])
  })
})
