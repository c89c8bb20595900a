import { ManualClock, MemoryDisk, silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { NO_CLUSTER, NOT_FINALIZED, parseConfiguration, type FeatureState } from '../core/quorum/index.ts'
import { decodeFeatureState, encodeFeatureReport, PacketType } from '../core/zab/index.ts'
import type { MemberContext } from './context.ts'
import { FeatureAuthority } from './feature-authority.ts'
import { FeatureLevels } from './feature-levels.ts'
import type { LearnerConnection } from './learner-connection.ts'

const HOUR_MS = 3_600_000
const RELEASE = 3

interface Learner extends LearnerConnection {
  readonly sent: FeatureState[]
  readonly failures: string[]
}

/** A learner that is up to date, of a release. */
function learner(serverId: number, { isObserver = false, level = RELEASE, hasLevels = true } = {}): Learner {
  const [sent, failures]: [FeatureState[], string[]] = [[], []]
  const features = hasLevels ? NOT_FINALIZED : undefined
  return {
    serverId,
    isObserver,
    isSynced: true,
    extension: { level, sharesSecret: false, hasData: true, cluster: NO_CLUSTER, features },
    levels: undefined,
    sent,
    failures,
    send(type: number, _: number, data: Uint8Array) {
      expect(type).toBe(PacketType.featureLevel)
      sent.push(decodeFeatureState(data))
    },
    fail: (reason: string) => failures.push(reason),
  } as unknown as Learner
}

/** A leader with id 1 of the voters 1 to 3 and the observers 4 and 5. */
async function lead({ auto = false, state = NOT_FINALIZED, members = 5, self = 1 } = {}) {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  const clock = new ManualClock()
  const roles = ['participant', 'participant', 'participant', 'observer', 'observer']
  const active = parseConfiguration(
    roles
      .slice(0, members)
      .map((role, i) => `server.${i + 1}=h:${2001 + i}:${3001 + i}:${role}`)
      .join('\n'),
  )
  const features = new FeatureLevels(disk, '/data', state, RELEASE)
  const failed: unknown[] = []
  const lines: string[] = []
  const context = {
    features,
    membership: { self, active, proposed: undefined, member: (id: number) => active.members.get(id) },
    platform: { clock, logger: { ...silentLogger, info: (_: object, line: string) => lines.push(line) } },
    settings: { featureAuto: auto },
    failed: (error: unknown) => failed.push(error),
  } as unknown as MemberContext
  const learners: Learner[] = []
  const authority = new FeatureAuthority(context, () => learners)
  authority.begin()
  const report = (
    by: Learner,
    stored: FeatureState = features.state,
    observers: readonly number[] = [],
  ): void =>
    authority.reports.receive(
      by,
      encodeFeatureReport(
        [by.serverId, ...observers].map((id) => ({ id, release: by.extension!.level, stored })),
      ),
    )
  /** Connects the other members, the observer 5 by way of 2. */
  const connect = (): void => {
    learners.push(learner(2), learner(3), learner(4, { isObserver: true }))
    for (const each of learners) report(each, features.state, each.serverId === 2 ? [5] : [])
  }
  return { authority, features, learners, report, connect, clock, disk, failed, lines }
}

describe('the leader of an ensemble', () => {
  it('finalizes the highest level of all members once all have stored it', async () => {
    const { authority, features, learners, report, connect, clock } = await lead()
    connect()
    const result = authority.finalize()
    await clock.untilIdle()
    expect(features.state).toEqual({ finalized: 0, proposed: RELEASE })
    for (const { sent } of learners) expect(sent.at(-1)).toEqual(features.state)
    for (const each of learners) report(each, features.state)
    await clock.untilIdle()
    // The observer that another member serves is missing.
    expect(features.finalized).toBe(0)
    report(learners[0]!, features.state, [5])
    expect(await result).toMatchObject({ isFinalized: true, waitsFor: [] })
    expect(features.state).toEqual({ finalized: RELEASE, proposed: 0 })
    for (const { sent } of learners) expect(sent.at(-1)).toEqual(features.state)
  })

  it('does not count a voter that follows without a vote, nor what a member says of another voter', async () => {
    const { authority, learners, report, connect } = await lead()
    connect()
    learners.splice(1, 1)
    report(learners[0]!, NOT_FINALIZED, [5, 3])
    expect(authority.plan().obstacles).toEqual(['server 3 is away'])
    const withoutVote = learner(3, { isObserver: true })
    learners.push(withoutVote)
    report(withoutVote)
    expect(authority.plan().obstacles).toEqual([
      'server 3 follows without a vote: hand leadership over (zabra transfer), or restart the leader where that is refused, until it votes',
    ])
  })

  it('counts what a voter says of its observers, and not what other servers say of them', async () => {
    const { authority, learners, report, connect } = await lead()
    connect()
    const stranger = learner(9)
    learners.push(stranger)
    report(learners[0]!, NOT_FINALIZED)
    for (const other of [learners[2]!, stranger]) report(other, NOT_FINALIZED, [5])
    expect(authority.plan().obstacles).toEqual(['server 5 is away'])
    report(learners[1]!, NOT_FINALIZED, [5])
    expect(authority.plan().obstacles).toEqual([])
  })

  it('names members that cannot store a level, and those below it', async () => {
    const { authority, learners, report, connect } = await lead()
    connect()
    learners.splice(1, 1, learner(3, { hasLevels: false }))
    expect(authority.plan().obstacles).toEqual(['server 3 runs a release from before feature levels'])
    learners.splice(1, 1, learner(3, { level: 2 }))
    expect(authority.plan().obstacles).toEqual(['server 3 has not reported its level yet'])
    report(learners[1]!)
    expect(authority.plan()).toMatchObject({ level: 2, obstacles: [] })
    expect(authority.plan(3).obstacles).toEqual([
      'server 3 has feature level 2: install a release of level 3 or later on it',
    ])
    expect(authority.plan(4).obstacles).toHaveLength(5)
  })

  it('plans its own level while it is no member and sees none of them', async () => {
    const { authority } = await lead({ self: 7 })
    expect(authority.plan()).toMatchObject({ level: RELEASE, finalized: 0 })
    expect(authority.plan().obstacles).toHaveLength(5)
    expect(JSON.stringify(authority.plan())).toContain(`"level":${RELEASE}`)
  })

  it('stores no level above its own release while it is no member', async () => {
    const { authority, features, learners, report } = await lead({ members: 3, self: 4 })
    for (const id of [1, 2, 3]) learners.push(learner(id, { level: RELEASE + 1 }))
    for (const each of learners) report(each, features.state, [])
    expect(await authority.finalize(RELEASE + 1)).toMatchObject({
      isFinalized: false,
      waitsFor: undefined,
      plan: { obstacles: [expect.stringContaining('server 4 has feature level 3')] },
    })
    expect(features.state).toEqual(NOT_FINALIZED)
  })

  it('closes the connection of a server below the level when it proposes one', async () => {
    const { authority, learners, connect, clock } = await lead()
    connect()
    const joining = learner(9, { level: 1 })
    learners.push(joining)
    void authority.finalize()
    await clock.untilIdle()
    expect(joining.failures).toEqual([expect.stringContaining('server 9 runs a release of feature level 1')])
    for (const { serverId, failures } of learners) if (serverId !== 9) expect(failures).toEqual([])
  })

  it('makes a server connect again that has the data, but not the level, when it changes', async () => {
    const { authority, learners, connect, clock } = await lead()
    connect()
    const [joining, former] = [learner(9), learner(10, { hasLevels: false })]
    learners.push(joining, former)
    void authority.finalize()
    await clock.untilIdle()
    expect(joining.sent).toEqual([])
    expect(joining.failures).toEqual([expect.stringContaining('the feature levels have changed')])
    expect(former.failures).toEqual([])
  })

  it('goes on with a level that an earlier leader has proposed, and lets none below it be finalized', async () => {
    const { authority, features, connect, clock } = await lead({ state: { finalized: 0, proposed: 2 } })
    expect(authority.plan(1).obstacles[0]).toContain('level 2 was asked for before')
    connect()
    await clock.untilIdle()
    expect(features.state).toEqual({ finalized: 2, proposed: 0 })
  })

  it('finalizes the last level of two that are asked for at once, and calls no other one final', async () => {
    const { authority, features, disk, clock, lines } = await lead({ members: 1 })
    const replaceFile = disk.replaceFile.bind(disk)
    disk.replaceFile = async (path, bytes) => {
      await new Promise<void>((resolve) => clock.immediate(resolve))
      return replaceFile(path, bytes)
    }
    const answers = Promise.all([authority.finalize(1), authority.finalize(2)])
    await clock.untilIdle()
    expect(features.state).toEqual({ finalized: 2, proposed: 0 })
    clock.advance(5000)
    expect((await answers).map(({ isFinalized }) => isFinalized)).toEqual([true, true])
    expect(lines.filter((line) => line.includes('is finalized'))).toHaveLength(1)
  })

  it('answers which members it waits for after five seconds, and when it does not lead any more', async () => {
    for (const end of [false, true]) {
      const { authority, features, learners, report, connect, clock } = await lead()
      connect()
      const result = authority.finalize()
      await clock.untilIdle()
      report(learners[2]!, features.state)
      if (end) authority.end()
      else clock.advance(5000)
      expect(await result).toMatchObject({ isFinalized: false, waitsFor: [2, 3, 5] })
    }
  })

  it('stops when the level cannot be written', async () => {
    const { authority, connect, disk, failed } = await lead()
    connect()
    disk.replaceFile = () => Promise.reject(new Error('refused'))
    await expect(authority.finalize()).rejects.toThrow('refused')
    expect(failed).toHaveLength(1)
  })

  it('sends its levels to a learner that reports other ones, once', async () => {
    const { learners, connect, report } = await lead({ state: { finalized: 2, proposed: 0 } })
    connect()
    expect(learners[1]!.sent).toEqual([])
    report(learners[1]!, NOT_FINALIZED)
    expect(learners[1]!.sent).toEqual([{ finalized: 2, proposed: 0 }])
  })
})

describe('feature.auto', () => {
  it('finalizes a level after 24 hours in which all members were connected and had it, without a break', async () => {
    const { authority, features, learners, report, connect, clock } = await lead({ auto: true })
    connect()
    clock.advance(23 * HOUR_MS)
    const [lost] = learners.splice(1, 1)
    authority.changed()
    learners.push(lost!)
    authority.changed()
    clock.advance(23.9 * HOUR_MS)
    await clock.untilIdle()
    expect(features.state).toEqual(NOT_FINALIZED)
    expect(authority.plan().readyForMs).toBe(23.9 * HOUR_MS)
    clock.advance(0.2 * HOUR_MS)
    await clock.untilIdle()
    for (const each of learners) report(each, features.state, each.serverId === 2 ? [5] : [])
    await clock.untilIdle()
    expect(features.finalized).toBe(RELEASE)
    expect(authority.plan().readyForMs).toBeUndefined()
  })

  it('finalizes nothing where it is off, nor at a leader that leads no more', async () => {
    for (const auto of [false, true]) {
      const { authority, features, connect, clock } = await lead({ auto })
      connect()
      if (auto) authority.end()
      clock.advance(48 * HOUR_MS)
      await clock.untilIdle()
      expect(features.state).toEqual(NOT_FINALIZED)
    }
  })
})
