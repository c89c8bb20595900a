import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { createOf } from '../core/testing/create-of.ts'
import { Tree } from '../core/tree/index.ts'
import { SnapshotFiles, type TakeSnapshotOptions } from './snapshot-files.ts'

const FOLDER = '/data'

async function given(compression: 'none' | 'gz' = 'none') {
  const disk = await diskWithFolder(FOLDER)
  const files = new SnapshotFiles({ disk, folder: FOLDER, compression, compressor: nodeCompression })
  const tree = new Tree({ digest: true, extendedTypes: false })
  const grow = (zxid: number): void =>
    void tree.apply({ sessionId: 1n, cxid: 1, zxid, time: 1 }, createOf(`/${zxid}`))
  grow(1)
  const size = (name: string): Promise<number> => disk.size(`${FOLDER}/${name}`)
  return { disk, files, tree, grow, size }
}

/** Options with a log that becomes durable when the test says so; `reached` resolves when the snapshot waits for it. */
function waiting(signal?: AbortSignal) {
  let release = (): void => {}
  let arrive: (zxid: number) => void = () => {}
  const durable = new Promise<void>((resolve) => (release = resolve))
  const reached = new Promise<number>((resolve) => (arrive = resolve))
  const options: TakeSnapshotOptions = {
    signal,
    waitUntilDurable: (zxid) => {
      arrive(zxid)
      return durable
    },
  }
  return { options, release, reached }
}

const AT_ONCE: TakeSnapshotOptions = { signal: undefined, waitUntilDurable: async () => {} }

describe('SnapshotFiles', () => {
  it('knows the size of the newest snapshot, and 0 without one', async () => {
    const { files, tree, grow, size } = await given()
    expect(files.newestBytes).toBe(0)
    await files.measure()
    expect(files.newestBytes).toBe(0)
    const { file } = await files.take(tree, [], AT_ONCE)
    expect([file, files.newestBytes]).toEqual(['snapshot.1', await size('snapshot.1')])
    grow(16)
    await files.take(tree, [], AT_ONCE)
    expect(files.newestBytes).toBe(await size('snapshot.10'))
    expect(files.newestBytes).toBeGreaterThan(await size('snapshot.1'))
  })

  it('writes a snapshot under its incoming name, compressed as all are', async () => {
    const { files, tree, disk } = await given('gz')
    expect(await files.writeIncoming(tree, [])).toBe('snapshot.1.gz')
    expect(disk.paths()).toEqual([expect.stringMatching(/incoming.*snapshot\.1\.gz/)])
  })

  it('aborts one snapshot by its signal, and no other', async () => {
    const { files, tree, grow, disk } = await given()
    const stop = new AbortController()
    const [stopped, other] = [waiting(stop.signal), waiting()]
    const first = files.take(tree, [], stopped.options)
    grow(2)
    const second = files.take(tree, [], other.options)
    await Promise.all([stopped.reached, other.reached])
    stop.abort(new Error('stopping'))
    for (const { release } of [stopped, other]) release()
    await expect(first).rejects.toThrow('stopping')
    expect((await second).file).toBe('snapshot.2')
    expect(disk.paths()).toEqual([`${FOLDER}/snapshot.2`])
  })

  it('takes no snapshot for a signal that is aborted already', async () => {
    const { files, tree, disk } = await given()
    const options = { ...AT_ONCE, signal: AbortSignal.abort(new Error('stopping')) }
    await expect(files.take(tree, [], options)).rejects.toThrow('stopping')
    expect(disk.paths()).toEqual([])
  })

  it('aborts all snapshots before the data are replaced, and waits for their end', async () => {
    const { files, tree, grow, disk } = await given()
    const waits = [waiting(), waiting()]
    const taking = waits.map(({ options }, i) => {
      grow(2 + i)
      return files.take(tree, [], options)
    })
    const ends = taking.map((one) => expect(one).rejects.toThrow('The data are being replaced'))
    await Promise.all(waits.map(({ reached }) => reached))
    let hasEnded = false
    const aborting = files.abortAll().then(() => (hasEnded = true))
    waits[0]!.release()
    for (let i = 0; i < 100; i++) await Promise.resolve()
    expect(hasEnded).toBe(false)
    waits[1]!.release()
    await aborting
    await Promise.all(ends)
    expect(disk.paths()).toEqual([])
    await files.abortAll()
    expect((await files.take(tree, [], AT_ONCE)).file).toBe('snapshot.3')
  })

  it('listens to a signal only while it writes', async () => {
    const { files, tree } = await given()
    const listeners = new Set<unknown>()
    const signal = {
      aborted: false,
      addEventListener: (_: string, listener: unknown) => void listeners.add(listener),
      removeEventListener: (_: string, listener: unknown) => void listeners.delete(listener),
    } as unknown as AbortSignal
    const { options, release, reached } = waiting(signal)
    const taking = files.take(tree, [], options)
    await reached
    expect(listeners.size).toBe(1)
    release()
    await taking
    expect(listeners.size).toBe(0)
  })
})
