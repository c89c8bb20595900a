import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import type { LoggedTxn } from '../core/types.ts'
import { takeSnapshot, type SnapshotKind } from './index.ts'
import { createTxn, FOLDER, LogFixture, appendTo } from './testing/log-fixture.ts'

const MIB = 1 << 20

/** Returns a tree of that many nodes with 64 KiB of data each. */
function treeOf(nodes: number): Tree {
  const tree = new Tree({ digest: true, extendedTypes: true })
  const stat = { czxid: 1, mzxid: 1, pzxid: 1, ctime: 1, mtime: 1, version: 0, cversion: 0, aversion: 0 }
  for (let i = 0; i < nodes; i++) tree.loadNode(`/n${i}`, new Uint8Array(65_536), -1, { ...stat, owner: 0n })
  tree.endLoad(nodes)
  return tree
}

/** Takes a snapshot and resolves to the largest number of bytes that were written and not synced. */
async function maxUnsynced(nodes: number): Promise<number> {
  const disk = await diskWithFolder('/data')
  let [unsynced, max] = [0, 0]
  disk.injectFault = (call, _, length) => {
    if (call === 'write') unsynced += length
    else if (call === 'sync') unsynced = 0
    max = Math.max(max, unsynced)
    return undefined
  }
  const options = { disk, folder: '/data', compression: 'none', compressor: nodeCompression } as const
  const { bytes } = await takeSnapshot(treeOf(nodes), [], options)
  expect(bytes).toBeGreaterThan(nodes * 65_536)
  expect(unsynced).toBe(0)
  return max
}

describe('the writes of takeSnapshot', () => {
  it('are synced every few MiB, so that a sync of the log does not wait for the whole snapshot', async () => {
    expect(await maxUnsynced(320)).toBeLessThan(9 * MIB)
  })

  it('of a small snapshot are synced once, at the end', async () => {
    expect(await maxUnsynced(16)).toBeGreaterThan(MIB)
  })

  it('reject when one sync fails, though later ones succeed', async () => {
    const disk = await diskWithFolder('/data')
    let syncs = 0
    disk.injectFault = (call) => (call === 'sync' && ++syncs === 1 ? { code: 'EIO' } : undefined)
    const options = { disk, folder: '/data', compression: 'none', compressor: nodeCompression } as const
    await expect(takeSnapshot(treeOf(320), [], options)).rejects.toMatchObject({ code: 'EIO' })
    expect(disk.paths()).toEqual([])
  })
})

describe('a snapshot', () => {
  it.each<[SnapshotKind]>([['none'], ['gz'], ['snappy']])(
    'of kind %s restores the tree and its sessions',
    async (kind) => {
      const fixture = await new LogFixture().open()
      await fixture.appendAll(1, 300)
      const file = await fixture.snapshot(kind)
      expect(file).toBe(kind === 'none' ? 'snapshot.12c' : `snapshot.12c.${kind}`)
      await fixture.appendAll(301, 310)
      await fixture.log.close()
      const { tree, sessions, lastZxid } = await fixture.recover()
      expect([tree.nodeCount, tree.digest, lastZxid]).toEqual([314, fixture.tree.digest, 310])
      expect([...sessions]).toEqual([[7n, 4000]])
    },
  )

  it('gets access control lists that were added while it was written from the log', async () => {
    const fixture = await new LogFixture().open()
    await fixture.appendAll(1, 900)
    const openWrite = fixture.disk.openWrite.bind(fixture.disk)
    let changed = false
    fixture.disk.openWrite = async (path, options) => {
      const writer = await openWrite(path, options)
      if (!path.includes('writing.')) return writer
      const write = writer.write.bind(writer)
      writer.write = async (bytes, position) => {
        if (!changed) {
          changed = true
          const { header, txn } = createTxn(901)
          const late = {
            header,
            txn: { ...txn, acl: [{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }] } as LoggedTxn['txn'],
            digest: undefined,
          }
          appendTo(fixture.log, late)
          await fixture.log.flush()
          fixture.tree.apply(late.header, late.txn)
        }
        return write(bytes, position)
      }
      return writer
    }
    fixture.appliesDurable = false
    const file = await fixture.snapshot()
    await fixture.log.close()
    const { tree, snapshot } = await fixture.recover()
    expect(snapshot).toEqual(file)
    expect(tree.aclOf(tree.find('/n901'))).toEqual([{ perms: 1, id: { scheme: 'ip', id: '10.0.0.1' } }])
    await fixture.disk.remove(`${FOLDER}/log.1`)
    await expect(fixture.recover()).rejects.toThrow(/RecoveryError|Expected/)
  })

  it('leaves no file when it is aborted', async () => {
    const fixture = await new LogFixture().open()
    await fixture.appendAll(1, 50)
    const stop = new AbortController()
    stop.abort(new Error('stopping'))
    const options = {
      disk: fixture.disk,
      folder: FOLDER,
      compression: 'none' as const,
      compressor: nodeCompression,
      signal: stop.signal,
    }
    await expect(takeSnapshot(fixture.tree, [], options)).rejects.toThrow('stopping')
    expect(fixture.fileNames().filter((name) => !name.startsWith('log.'))).toEqual([])
  })
})
