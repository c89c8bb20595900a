import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import { createOf } from '../core/testing/create-of.ts'
import { Tree } from '../core/tree/index.ts'
import { loadSnapshot } from './snapshot-reader.ts'
import { takeSnapshot, type SnapshotOptions } from './snapshot-writer.ts'

const FOLDER = '/data'
/** Nodes that each tree has by itself. */
const OWN = 4

/** Returns a tree with that many nodes in all. */
function treeOf(nodes: number, { digest = true, bytes = 0 } = {}): Tree {
  const tree = new Tree({ digest, extendedTypes: true })
  for (let zxid = 1; zxid <= nodes - OWN; zxid++)
    tree.apply(
      { sessionId: 1n, cxid: 1, zxid, time: 1 },
      createOf(`/${zxid}`, { data: new Uint8Array(bytes) }),
    )
  return tree
}

/** Options whose signal calls back before each slice, and before the file gets its name. */
async function given(onSlice: (slice: number) => void = () => {}) {
  const disk = await diskWithFolder(FOLDER)
  const writes: number[] = []
  disk.injectFault = (call, _, length) => {
    if (call === 'write') writes.push(length)
    return undefined
  }
  let slices = 0
  const signal = { throwIfAborted: () => onSlice(++slices) } as AbortSignal
  const options: SnapshotOptions = {
    disk,
    folder: FOLDER,
    compression: 'none',
    compressor: nodeCompression,
    sliceNodes: 5,
    signal,
  }
  const load = async (name: string, zxid: number) => {
    disk.injectFault = undefined
    const tree = new Tree({ digest: true, extendedTypes: true })
    return { tree, ...(await loadSnapshot(disk, FOLDER, { name, zxid }, tree, nodeCompression)) }
  }
  return { disk, options, writes, load, slices: () => slices }
}

describe('takeSnapshot', () => {
  it.each([
    [5, 1],
    [6, 2],
    [10, 2],
    [11, 3],
  ])('writes a tree of %i nodes in %i slices of five, and small ones at once', async (nodes, count) => {
    const { options, slices, writes } = await given()
    const written = await takeSnapshot(treeOf(nodes), [], options)
    // Once more at the end.
    expect([slices(), written.nodes, writes]).toEqual([count + 1, nodes, [written.bytes]])
  })

  it('ends a slice at 64 KiB, and writes it', async () => {
    const { options, slices, writes } = await given()
    const { bytes } = await takeSnapshot(treeOf(OWN + 8, { bytes: 40_000 }), [], options)
    expect([slices(), writes.map((length) => Math.round(length / 40_000))]).toEqual([6, [2, 2, 2, 2]])
    expect(writes.reduce((sum, length) => sum + length, 0)).toBe(bytes)
  })

  it('writes access control lists in slices of 64 KiB too', async () => {
    const { options, writes, load } = await given()
    const tree = treeOf(OWN)
    for (let zxid = 1; zxid <= 10; zxid++) {
      const acl = [{ perms: 31, id: { scheme: 'digest', id: `${zxid}:${'x'.repeat(30_000)}` } }]
      tree.apply({ sessionId: 1n, cxid: 1, zxid, time: 1 }, createOf(`/${zxid}`, { acl }))
    }
    const { file, zxid } = await takeSnapshot(tree, [], options)
    expect(writes.map((length) => Math.round(length / 30_000))).toEqual([3, 3, 3, 1])
    const loaded = await load(file, zxid)
    expect(loaded.tree.acls.entries()).toEqual(tree.acls.entries())
  })

  it('writes a thousand sessions in a slice, as they are when it begins', async () => {
    const { options, writes, load } = await given()
    const [tree, sessions] = [treeOf(OWN), new SessionMap<number>()]
    for (let i = 0; i < 20_000; i++) sessions.set(BigInt(i), 4000)
    const before = new SessionMap(sessions)
    const isTaken = takeSnapshot(tree, sessions, options)
    while (writes.length === 0) await Promise.resolve()
    for (let i = 0; i < 20_000; i += 2) sessions.delete(BigInt(i))
    sessions.set(3n, 9999).set(-1n, 4000)
    const { file, zxid } = await isTaken
    // The first one has the head too, and the last one what follows.
    expect(writes.slice(1, -1)).toEqual(Array.from({ length: 19 }, () => 12_000))
    expect((await load(file, zxid)).sessions).toEqual(before)
  })

  it('lets other work run between two slices', async () => {
    let turns = 0
    let isOver = false
    const other = (async () => {
      while (!isOver) {
        turns++
        await Promise.resolve()
      }
    })()
    const seen: number[] = []
    const { options } = await given(() => seen.push(turns))
    await takeSnapshot(treeOf(16), [], options)
    isOver = true
    await other
    expect(new Set(seen).size).toBe(seen.length)
  })

  it('replaces what a crash has left of the same snapshot', async () => {
    const { disk, options, load } = await given()
    const writer = await disk.openWrite(`${FOLDER}/writing.snapshot.8.tmp`, { create: true, durable: false })
    await writer.write(new Uint8Array(5000).fill(1), 0)
    await writer.close()
    const { file, bytes } = await takeSnapshot(treeOf(12), [[7n, 4000]], options)
    expect([file, await disk.size(`${FOLDER}/${file}`)]).toEqual(['snapshot.8', bytes])
    expect(await load(file, 8)).toMatchObject({ nodes: 12, sessions: new SessionMap([[7n, 4000]]) })
  })

  it('has the digest of the tree at its end, and the last zxid, which may be later than its name', async () => {
    const tree = treeOf(12)
    const { options, load } = await given((slice) => {
      if (slice === 2) tree.apply({ sessionId: 1n, cxid: 1, zxid: 9, time: 1 }, createOf('/9'))
    })
    const written = await takeSnapshot(tree, [], options)
    expect(written).toMatchObject({ file: 'snapshot.8', zxid: 8, lastZxid: 9 })
    expect(await load('snapshot.8', 8)).toMatchObject({
      digest: { zxid: 9, value: tree.digest },
      lastZxid: 9,
    })
  })

  it('has no digest of a tree without one', async () => {
    const { options, load } = await given()
    await takeSnapshot(treeOf(12, { digest: false }), [], options)
    expect(await load('snapshot.8', 8)).toMatchObject({ digest: undefined, lastZxid: undefined, nodes: 12 })
  })

  it('ends between two transactions, not within one', async () => {
    const tree = treeOf(12)
    const { options, load } = await given((slice) => {
      if (slice === 2) tree.beginApply()
    })
    let isTaken = false
    const taking = takeSnapshot(tree, [], options).finally(() => (isTaken = true))
    for (let i = 0; i < 200; i++) await Promise.resolve()
    expect(isTaken).toBe(false)
    tree.endApply(9)
    expect((await taking).lastZxid).toBe(9)
    expect(await load('snapshot.8', 8)).toMatchObject({ digest: { zxid: 9 } })
  })

  it('writes only parts that have bytes', async () => {
    const { options, writes } = await given()
    // Gzip keeps the first ones.
    await takeSnapshot(treeOf(OWN + 8, { bytes: 40_000 }), [], { ...options, compression: 'gz' })
    expect(Math.min(...writes)).toBeGreaterThan(0)
  })

  it('closes the file only when its sync has ended, also after a failure', async () => {
    const tree = treeOf(OWN + 160, { bytes: 65_536 })
    let fails = false
    const { disk, options } = await given(() => {
      if (fails) throw new Error('stopping')
    })
    const openWrite = disk.openWrite.bind(disk)
    const calls: string[] = []
    let release = (): void => {}
    disk.openWrite = async (path, given) => {
      const writer = await openWrite(path, given)
      const close = writer.close.bind(writer)
      writer.sync = () => {
        calls.push('sync')
        fails = true
        return new Promise((resolve) => (release = resolve))
      }
      writer.close = () => {
        calls.push('close')
        return close()
      }
      return writer
    }
    const failed = expect(takeSnapshot(tree, [], options)).rejects.toThrow('stopping')
    for (let i = 0; i < 3000; i++) await Promise.resolve()
    expect(calls).toEqual(['sync'])
    release()
    await failed
    expect([calls, disk.paths()]).toEqual([['sync', 'close'], []])
  })
})
