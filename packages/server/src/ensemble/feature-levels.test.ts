import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { NO_CLUSTER, type FeatureState } from '../core/quorum/index.ts'
import type { MemberExtension } from '../core/zab/index.ts'
import { readFeatureState } from '../persistence/index.ts'
import { FeatureLevels } from './feature-levels.ts'

const state = (finalized: number, proposed = 0): FeatureState => ({ finalized, proposed })
const said = (level: number, features?: FeatureState): MemberExtension => ({
  level,
  sharesSecret: false,
  hasData: true,
  cluster: NO_CLUSTER,
  features,
})

async function create(current: FeatureState, release = 3) {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  return { disk, levels: new FeatureLevels(disk, '/data', current, release) }
}

describe('a member', () => {
  it.each([
    [state(0), undefined],
    [state(0), said(0)],
    [state(2), said(2)],
    [state(2), said(9)],
    [state(1, 2), said(2)],
  ])('that has stored %j works with a server that says %j', async (current, other) => {
    expect((await create(current)).levels.refusalOf(2, other)).toBeUndefined()
  })

  it.each([
    [state(1), undefined, 'server 2 runs Apache ZooKeeper'],
    [state(0, 1), undefined, 'server 2 runs Apache ZooKeeper'],
    [state(2), said(1), 'server 2 runs a release of feature level 1'],
    [state(1, 2), said(1), 'server 2 runs a release of feature level 1'],
  ])('that has stored %j refuses a server that says %j', async (current, other, reason) => {
    expect((await create(current)).levels.refusalOf(2, other)).toContain(reason)
  })

  it.each([
    [state(0), undefined, undefined],
    [state(0), said(5, state(3)), undefined],
    [state(1), said(5), undefined],
    [state(2), said(2, state(1)), undefined],
    [state(1), undefined, 'server 2 runs Apache ZooKeeper'],
    [state(2), said(1, state(0)), 'server 2 runs a release of feature level 1'],
    [state(0), said(5, state(4)), 'server 2 leads an ensemble that was finalized at feature level 4'],
    [state(0), said(5, state(0, 4)), 'Install a later release on this server'],
  ])('that has stored %j, of release 3, and a leader that says %j', async (current, leader, reason) => {
    const refusal = (await create(current)).levels.refusalOfLeader(2, leader)
    if (reason === undefined) expect(refusal).toBeUndefined()
    else expect(refusal).toContain(reason)
  })

  it.each([
    ['a leader without a level keeps a finalized one', state(1), state(0), state(1)],
    ['a leader without a level drops a proposed one', state(1, 2), state(0), state(1)],
    ['a leader with a proposed level takes it', state(1), state(1, 3), state(1, 3)],
    ['a leader with a finalized level takes it', state(0, 1), state(2), state(2)],
    ['a leader with less keeps what is finalized', state(2), state(0, 1), state(2)],
  ])('that follows %s', async (_, own, leader, expected) => {
    const { levels, disk } = await create(own)
    await levels.follow(leader)
    expect(levels.state).toEqual(expected)
    if (own !== expected) disk.powerCut()
    expect(levels.usable).toBe(expected.finalized)
  })

  it('has stored on disk what it says', async () => {
    const { levels, disk } = await create(state(0))
    for (const step of [() => levels.propose(2), () => levels.confirm(2), () => levels.join(state(3, 4))]) {
      await step()
      disk.powerCut()
      expect(await readFeatureState(disk, '/data')).toEqual(levels.state)
    }
    expect(levels.state).toEqual(state(3))
  })

  it('uses a level only once it is finalized', async () => {
    const { levels } = await create(state(1))
    await levels.propose(2)
    expect(levels.usable).toBe(1)
    await levels.confirm(2)
    expect(levels.usable).toBe(2)
  })

  it('finalizes only the level that is proposed, and proposes none that is finalized', async () => {
    const { levels } = await create(state(1))
    await levels.propose(1)
    await levels.propose(2)
    await levels.confirm(3)
    expect(levels.state).toEqual(state(1, 2))
  })

  it('says what it was when the disk refuses', async () => {
    const { levels, disk } = await create(state(1))
    disk.replaceFile = () => Promise.reject(new Error('refused'))
    await expect(levels.propose(2)).rejects.toThrow('refused')
    expect(levels.state).toEqual(state(1))
    await levels.written()
  })
})
