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
