import { MemoryDisk } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { expect, it } from 'vitest'
import { purge } from './index.ts'
import { FOLDER, LogFixture } from './testing/log-fixture.ts'

const FOLDERS = { snapshots: FOLDER, logs: FOLDER }

it('purge keeps at least three sound snapshots and every log that recovery from them needs', async () => {
  const fixture = await new LogFixture().open({ fileSizeLimitBytes: 1500 })
  for (let i = 0; i < 7; i++) {
    await fixture.snapshot()
    await fixture.appendAll(i * 30 + 1, i * 30 + 30)
  }
  await fixture.log.close()
  const newest = fixture
    .fileNames()
    .filter((name) => name.startsWith('snapshot'))
    .at(-1)!
  fixture.disk.putFile(`${FOLDER}/${newest}`, new Uint8Array(100))
  const removed = await purge(fixture.disk, FOLDERS, 1, { compression: nodeCompression })
  expect(removed).toContain('snapshot.0')
  expect(fixture.fileNames().filter((name) => name.startsWith('snapshot'))).toEqual([
    'snapshot.5a',
    'snapshot.78',
    'snapshot.96',
    newest,
  ])
  expect((await fixture.recover()).lastZxid).toBe(210)
  fixture.disk.putFile(`${FOLDER}/snapshot.96`, new Uint8Array(100))
  fixture.disk.putFile(`${FOLDER}/snapshot.78`, new Uint8Array(100))
  expect((await fixture.recover()).tree.digest).toEqual(fixture.tree.digest)
  expect(
    await purge(new MemoryDisk().clone(), FOLDERS, 3, { compression: nodeCompression }).catch(
      (error: unknown) => error,
    ),
  ).toMatchObject({
    code: 'ENOENT',
  })
})

/** Writes a log and a snapshot for each of these runs of transactions, the snapshot after the first of its run. */
async function runs(...each: readonly (readonly [first: number, last: number])[]): Promise<LogFixture> {
  const fixture = new LogFixture()
  for (const [first, last] of each) {
    await fixture.open({})
    await fixture.appendAll(first, first)
    await fixture.snapshot()
    if (last > first) await fixture.appendAll(first + 1, last)
    await fixture.log.close()
  }
  return fixture
}

it('purge names what it removes, snapshots first, and nothing that it has removed before', async () => {
  const fixture = await runs([1, 5], [6, 9], [10, 14], [15, 19])
  const options = { compression: nodeCompression }
  // The log that begins with the transaction of the oldest snapshot holds all that comes after it.
  expect(await purge(fixture.disk, FOLDERS, 3, options)).toEqual(['snapshot.1', 'log.1'])
  expect(await purge(fixture.disk, FOLDERS, 3, options)).toEqual([])
  expect((await fixture.recover()).lastZxid).toBe(19)
})

it('purge removes nothing where no snapshot is sound', async () => {
  const fixture = await runs([1, 5], [6, 9], [10, 14], [15, 19])
  for (const name of fixture.fileNames())
    if (name.startsWith('snapshot')) fixture.disk.putFile(`${FOLDER}/${name}`, new Uint8Array(100))
  const before = fixture.fileNames()
  expect(await purge(fixture.disk, FOLDERS, 3, { compression: nodeCompression })).toEqual([])
  expect(fixture.fileNames()).toEqual(before)
})

it.each([FOLDER, '/logs/version-2'])(
  'what purge removes stays away over a power cut, with logs in %s',
  async (logs) => {
    const fixture = await runs([1, 5], [6, 9], [10, 14], [15, 19])
    const { disk } = fixture
    if (logs !== FOLDER) {
      await disk.makeFolder(logs)
      for (const name of fixture.fileNames())
        if (name.startsWith('log')) disk.putFile(`${logs}/${name}`, await disk.readFile(`${FOLDER}/${name}`))
    }
    await purge(disk, { snapshots: FOLDER, logs }, 3, { compression: nodeCompression })
    disk.powerCut()
    expect(await disk.exists(`${FOLDER}/snapshot.1`)).toBe(false)
    expect(await disk.exists(`${logs}/log.1`)).toBe(false)
    expect(await disk.exists(`${logs}/log.6`)).toBe(true)
  },
)

/** Returns the logs that a purge leaves while the next backup reads after a transaction, and what it drops. */
async function logsAfterPurge(
  unsavedAfter: number,
  { bytesOfEach, missing }: { bytesOfEach?: number; missing?: string } = {},
): Promise<[string[], number[]]> {
  const fixture = await new LogFixture().open({})
  for (let first = 1; first <= 61; first += 10) {
    await fixture.snapshot()
    await fixture.log.close()
    await fixture.open({})
    await fixture.appendAll(first, first + 9)
  }
  await fixture.log.close()
  if (bytesOfEach !== undefined) fixture.disk.size = () => Promise.resolve(bytesOfEach)
  if (missing !== undefined) await fixture.disk.remove(`${FOLDER}/${missing}`)
  const dropped: number[] = []
  const droppedUnsaved = (bytes: number): void => void dropped.push(bytes)
  const options = { compression: nodeCompression, unsavedAfter, droppedUnsaved }
  await purge(fixture.disk, FOLDERS, 3, options)
  const left = fixture.fileNames()
  expect(left.filter((name) => name.startsWith('snapshot'))).toEqual([
    'snapshot.28',
    'snapshot.32',
    'snapshot.3c',
  ])
  return [left.filter((name) => name.startsWith('log')), dropped]
}

const NEEDED = ['log.1f', 'log.29', 'log.33', 'log.3d']

it.each([
  [0, ['log.1', 'log.b', 'log.15', ...NEEDED]],
  [14, ['log.b', 'log.15', ...NEEDED]],
  [20, ['log.15', ...NEEDED]],
  [30, NEEDED],
  [65, NEEDED],
  [Infinity, NEEDED],
])('purge keeps the logs for a backup that reads after %d, and no snapshots for it', async (after, logs) => {
  expect(await logsAfterPurge(after)).toEqual([logs, []])
})

it('purge keeps the rest of the logs for a backup where others are missing: the server may have begun with a snapshot', async () => {
  expect(await logsAfterPurge(5, { missing: 'log.1' })).toEqual([['log.b', 'log.15', ...NEEDED], []])
})

it('purge keeps no more than 1 GiB of logs for a backup', async () => {
  expect(await logsAfterPurge(14, { bytesOfEach: 512 << 20 })).toEqual([['log.b', 'log.15', ...NEEDED], []])
  expect(await logsAfterPurge(14, { bytesOfEach: (512 << 20) + 1 })).toEqual([NEEDED, [(1 << 30) + 2]])
})
