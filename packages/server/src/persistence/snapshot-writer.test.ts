import { MemoryDisk } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { describe, expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import { takeSnapshot } from './snapshot-writer.ts'

const MIB = 1 << 20

/** A tree of so many nodes with 64 KiB of data each. */
function treeOf(nodes: number): Tree {
  const tree = new Tree({ digest: true, extendedTypes: true })
  const stat = { czxid: 1, mzxid: 1, pzxid: 1, ctime: 1, mtime: 1, version: 0, cversion: 0, aversion: 0 }
  for (let i = 0; i < nodes; i++) tree.loadNode(`/n${i}`, new Uint8Array(65_536), -1, { ...stat, owner: 0n })
  tree.endLoad(nodes)
  return tree
}

/** The most bytes of one file that waited for the disk at a time while a snapshot was taken. */
async function mostWaiting(nodes: number): Promise<number> {
  const disk = new MemoryDisk()
  await disk.makeFolder('/data')
  let [waiting, most] = [0, 0]
  disk.injectFault = (call, _, length) => {
    if (call === 'write') waiting += length
    else if (call === 'sync') waiting = 0
    most = Math.max(most, waiting)
    return undefined
  }
  const options = { disk, folder: '/data', compression: 'none', compressor: nodeCompression } as const
  const { bytes } = await takeSnapshot(treeOf(nodes), [], options)
  expect(bytes).toBeGreaterThan(nodes * 65_536)
  expect(waiting).toBe(0)
  return most
}

describe('a snapshot on its way to the disk', () => {
  it('never leaves much to be made durable, so that the log does not wait behind all of it', async () => {
    expect(await mostWaiting(320)).toBeLessThan(9 * MIB)
  })

  it('that is small is made durable once, at its end', async () => {
    expect(await mostWaiting(16)).toBeGreaterThan(MIB)
  })

  it('fails when the disk could not take a part of it, though it says later that it has all', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/data')
    let syncs = 0
    disk.injectFault = (call) => (call === 'sync' && ++syncs === 1 ? { code: 'EIO' } : undefined)
    const options = { disk, folder: '/data', compression: 'none', compressor: nodeCompression } as const
    await expect(takeSnapshot(treeOf(320), [], options)).rejects.toMatchObject({ code: 'EIO' })
    expect(disk.paths()).toEqual([])
  })
})
