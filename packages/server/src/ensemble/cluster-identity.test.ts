import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { describe, expect, it, vi } from 'vitest'
import { NO_CLUSTER, parseConfiguration, type ClusterId } from '../core/quorum/index.ts'
import { readClusterId } from '../persistence/index.ts'
import { FEATURE_LEVEL } from '../version.ts'
import { ClusterIdentity } from './cluster-identity.ts'

const CONFIGURATION = parseConfiguration(
  [1, 2, 3].map((id) => `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:participant`).join('\n'),
)

const cluster = (generation: number, byte: number, isProposed = false): ClusterId => ({
  generation,
  bytes: new Uint8Array(16).fill(byte),
  isProposed,
})
const said = (id: ClusterId, hasData = true) => ({ level: 1, sharesSecret: false, hasData, cluster: id })

/** Lets server 1 of three propose an id, while the others that are connected say these things; 2 is the first one. */
const propose = (identity: ClusterIdentity, voters: readonly Parameters<ClusterIdentity['refusalOf']>[1][]) =>
  identity.propose(new Map(voters.map((voter, index) => [index + 2, voter])), 1, CONFIGURATION)

async function create(current: ClusterId, { hasData = true } = {}) {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  const stops: string[] = []
  const database = {
    folders: { snapshots: '/data', logs: '/data' },
    lastZxid: hasData ? 1 : 0,
    epochs: { accepted: 0, current: 0 },
  }
  const superseded = (error: Error): unknown => stops.push(error.message)
  const platform = { disk, random: new SeededRandom(1) }
  const identity = new ClusterIdentity({ platform, database, release: FEATURE_LEVEL, superseded }, current)
  return { identity, disk, stops }
}

describe('a member', () => {
  const [first, second] = [cluster(1, 1), cluster(2, 2)]
  const [formed, foreign] = [cluster(0, 3), cluster(0, 4)]

  it.each([
    ['the same ensemble', first, said(first)],
    ['Apache ZooKeeper', first, undefined],
    ['a server without data', first, said(NO_CLUSTER, false)],
    ['an empty server that was started alone', first, said(formed, false)],
    ['an ensemble that has no id yet', formed, said(NO_CLUSTER)],
    ['an ensemble whose id is proposed', formed, said(cluster(0, 4, true))],
  ])('listens to one of %s', async (_, current, other) => {
    const { identity, stops } = await create(current)
    expect(identity.refusalOf(2, other, true)).toBeUndefined()
    expect(stops).toEqual([])
  })

  it.each([
    ['the ensemble before', second, said(NO_CLUSTER)],
    ['an ensemble before that had an id', second, said(formed)],
    ['an earlier recovery', second, said(first)],
    ['another recovery of the same ensemble', second, said(cluster(2, 9))],
    ['another ensemble', formed, said(foreign)],
  ])('refuses one of %s, with both ids and what to do', async (_, current, other) => {
    const { identity, stops } = await create(current)
    expect(identity.refusalOf(2, other, true)).toMatch(
      /^server 2 .* \((none|\d-[\da-f]{32}), this one is \d-[\da-f]{32}\).* run zabra recover adopt/,
    )
    expect(stops).toEqual([])
  })

  it('says of a server that was recovered apart that it was, not that it is from before a recovery', async () => {
    const { identity } = await create(second)
    expect(identity.refusalOf(2, said(cluster(2, 9)), true)).toContain('it was recovered apart from this one')
    expect(identity.refusalOf(2, said(first), true)).toContain('it is from before a recovery')
  })

  it('stops when a known member is of a later ensemble, and not for one that no configuration names', async () => {
    const { identity, stops } = await create(NO_CLUSTER)
    expect(identity.refusalOf(9, said(first), false)).toContain('recovered without this server')
    expect(stops).toEqual([])
    identity.refusalOf(2, said(first), true)
    expect(stops).toEqual([expect.stringContaining('Server 2 says that the ensemble was recovered')])
  })

  it('refuses a known member of a later ensemble, and goes on, once it has had a leader', async () => {
    const { identity, stops } = await create(NO_CLUSTER)
    identity.established()
    expect(identity.refusalOf(2, said(first), true)).toMatch(
      /recovered without this server.*This server has had a leader since it started, and goes on/,
    )
    expect(stops).toEqual([])
  })

  it('takes the ensemble of its leader, on disk, only while it has none', async () => {
    const { identity, disk } = await create(NO_CLUSTER, { hasData: false })
    expect(identity.refusalOf(2, said(first), true)).toBeUndefined()
    await identity.join(said(first))
    expect([identity.current, await readClusterId(disk, '/data')]).toEqual([first, first])
    await identity.join(said(second))
    expect(await readClusterId(disk, '/data')).toEqual(first)
  })

  it('replaces a proposed id by that of a leader whose history it has, and a final one by none', async () => {
    const { identity, disk } = await create(cluster(0, 3, true))
    const other = cluster(0, 4, true)
    await identity.join(said(other))
    expect(identity.current).toEqual(cluster(0, 3, true))
    await identity.follow(said(other))
    expect(await readClusterId(disk, '/data')).toEqual(other)
    await identity.follow(said(cluster(0, 4)))
    await identity.follow(said(cluster(0, 5)))
    expect([identity.current, await readClusterId(disk, '/data')]).toEqual([foreign, foreign])
  })

  it('proposes an id as the leader of voters of Zabra, unless one of them has a final one', async () => {
    const { identity, disk } = await create(NO_CLUSTER)
    await propose(identity, [said(NO_CLUSTER), undefined])
    expect(identity.current).toEqual(NO_CLUSTER)
    await propose(identity, [said(NO_CLUSTER), said(cluster(0, 9, true))])
    const drawn = identity.current
    expect([drawn.isProposed, await readClusterId(disk, '/data')]).toEqual([true, drawn])
    const replace = vi.spyOn(disk, 'replaceFile')
    await Promise.all([identity.confirm(), identity.confirm()])
    expect(replace).toHaveBeenCalledTimes(1)
    expect(await readClusterId(disk, '/data')).toEqual({ ...drawn, isProposed: false })
    const returned = await create(NO_CLUSTER)
    await propose(returned.identity, [said(NO_CLUSTER), said(foreign)])
    expect(returned.identity.current).toEqual(foreign)
  })

  it.each([
    [
      'a final id, for one that it has proposed',
      cluster(0, 3, true),
      true,
      [said(cluster(0, 9, true)), said(foreign)],
      foreign,
    ],
    [
      'a final id of a voter with data, for its own while it has none',
      formed,
      false,
      [said(foreign)],
      foreign,
    ],
    [
      'a proposed id, rather than to draw another one',
      NO_CLUSTER,
      true,
      [said(cluster(0, 9, true))],
      cluster(0, 9, true),
    ],
    ['no id of a voter without data, for its own final one', formed, false, [said(foreign, false)], formed],
    ['no other id for its own final one', formed, true, [said(foreign)], formed],
    [
      'no id while a voter runs Apache ZooKeeper',
      cluster(0, 3, true),
      true,
      [said(foreign), undefined],
      cluster(0, 3, true),
    ],
  ])('as the leader takes %s', async (_, current, hasData, voters, expected) => {
    const { identity } = await create(current, { hasData })
    await propose(identity, voters)
    expect(identity.current).toEqual(expected)
  })

  const [a, b, c] = [cluster(0, 0xa, true), cluster(0, 0xb, true), cluster(0, 0xc, true)]

  it.each([
    ['its own, which all have', a, [said(a), said(a)], a],
    ['its own, where those of the others cannot be final', a, [said(b), said(c)], a],
    ['that which may be final at the member that is down, for its own', NO_CLUSTER, [said(b)], b],
    ['that of two voters, for its own', a, [said(b), said(b)], b],
    [
      'none where its own and that of the other may be final at the member that is down',
      a,
      [said(b)],
      undefined,
    ],
    ['none while the others are down', a, [], undefined],
    ['none while a voter runs Apache ZooKeeper', a, [said(a), undefined], undefined],
    ['the final id of a voter, whatever the others have', a, [said(b), said(foreign)], foreign],
    ['its own final id, also while the others are down', formed, [], formed],
  ])('as the leader announces %s', async (_, current, voters, expected) => {
    const { identity, disk } = await create(current)
    await propose(identity, voters)
    expect(identity.isAnnounced).toBe(expected !== undefined)
    expect(identity.announcement.cluster).toEqual(expected ?? NO_CLUSTER)
    expect(identity.current).toEqual(expected ?? current)
    if (expected !== undefined && expected !== current)
      expect(await readClusterId(disk, '/data')).toEqual(expected)
  })

  it('counts no voter that keeps a final id of its own as one that has stored the proposed id', async () => {
    const { identity } = await create(cluster(0, 3, true))
    const voters = [NO_CLUSTER, cluster(0, 9, true), formed, foreign].map((id) => said(id))
    expect([...voters, said(foreign, false)].map((voter) => identity.isTakenBy(voter))).toEqual([
      true,
      true,
      true,
      false,
      true,
    ])
  })

  it.each(['0-00\n', '0-00000000000000000000000000000000\n', '256-11111111111111111111111111111111\n'])(
    'does not start with the id %j, which cannot be read',
    async (text) => {
      const { disk } = await create(first)
      await disk.replaceFile('/data/zabra.cluster', new TextEncoder().encode(text))
      await expect(readClusterId(disk, '/data')).rejects.toThrow('Copy zabra.cluster from another member.')
    },
  )
})
