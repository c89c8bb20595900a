import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { ORIGINAL_CLUSTER, type ClusterId } from '../core/quorum/index.ts'
import { readClusterId } from '../persistence/index.ts'
import { ClusterIdentity } from './cluster-identity.ts'

const cluster = (generation: number, byte: number): ClusterId => ({
  generation,
  bytes: new Uint8Array(16).fill(byte),
})
const said = (id: ClusterId, hasData = true) => ({ level: 1, sharesSecret: false, hasData, cluster: id })

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
  const identity = new ClusterIdentity({ platform: { disk }, database, superseded }, current)
  return { identity, disk, stops }
}

describe('a member', () => {
  const [first, second] = [cluster(1, 1), cluster(2, 2)]

  it.each([
    ['the same ensemble', first, said(first)],
    ['Apache ZooKeeper', first, undefined],
    ['a server without data', first, said(ORIGINAL_CLUSTER, false)],
  ])('listens to one of %s', async (_, current, other) => {
    const { identity, stops } = await create(current)
    expect(identity.refusalOf(2, other, true)).toBeUndefined()
    expect(stops).toEqual([])
  })

  it.each([
    ['the ensemble before', said(ORIGINAL_CLUSTER)],
    ['an earlier recovery', said(first)],
    ['another recovery of the same ensemble', said(cluster(2, 9))],
  ])('refuses one of %s, and says what to do', async (_, other) => {
    const { identity, stops } = await create(second)
    expect(identity.refusalOf(2, other, true)).toMatch(/^server 2 .* run zabra recover adopt/)
    expect(stops).toEqual([])
  })

  it('stops when a known member is of a later ensemble, and not for one that no configuration names', async () => {
    const { identity, stops } = await create(ORIGINAL_CLUSTER)
    expect(identity.refusalOf(9, said(first), false)).toContain('recovered without this server')
    expect(stops).toEqual([])
    identity.refusalOf(2, said(first), true)
    expect(stops).toEqual([expect.stringContaining('Server 2 says that the ensemble was recovered')])
  })

  it('refuses a known member of a later ensemble, and goes on, once it has had a leader', async () => {
    const { identity, stops } = await create(ORIGINAL_CLUSTER)
    identity.established()
    expect(identity.refusalOf(2, said(first), true)).toMatch(
      /recovered without this server.*This server has had a leader since it started, and goes on/,
    )
    expect(stops).toEqual([])
  })

  it('takes the ensemble of its leader, on disk, only while it has none', async () => {
    const { identity, disk } = await create(ORIGINAL_CLUSTER, { hasData: false })
    expect(identity.refusalOf(2, said(first), true)).toBeUndefined()
    await identity.join(said(first))
    expect([identity.current, await readClusterId(disk, '/data')]).toEqual([first, first])
    await identity.join(said(second))
    expect(await readClusterId(disk, '/data')).toEqual(first)
  })

  it('does not start with an id that cannot be read', async () => {
    const { disk } = await create(first)
    await disk.replaceFile('/data/zabra.cluster', new TextEncoder().encode('0-00\n'))
    await expect(readClusterId(disk, '/data')).rejects.toThrow('Copy zabra.cluster from another member.')
  })
})
