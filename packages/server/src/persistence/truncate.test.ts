import { expect, it } from 'vitest'
import { truncateTo } from './index.ts'
import { LogFixture } from './testing/log-fixture.ts'

it('truncateTo ends the history at a transaction and removes later snapshots', async () => {
  const fixture = await new LogFixture().open({ fileSizeLimitBytes: 2000 })
  await fixture.snapshot()
  await fixture.appendAll(1, 60)
  await fixture.snapshot()
  await fixture.appendAll(61, 100)
  await fixture.log.close()
  expect(await truncateTo(fixture.recoveryOptions(), 45)).toMatchObject({ isExact: true })
  const { lastZxid, tree } = await fixture.recover()
  expect([lastZxid, tree.has('/n45'), tree.has('/n46')]).toEqual([45, true, false])
  expect(fixture.fileNames().filter((name) => name.startsWith('snapshot'))).toEqual(['snapshot.0'])
})
