import { silentLogger } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { FOLDER, LogFixture } from './testing/log-fixture.ts'
import { finishReplacement, incomingName, replaceAllFiles } from './replacement.ts'

const FOLDERS = { snapshots: FOLDER, logs: FOLDER }

/** A folder with a history of 30 transactions, and one of `count` as a snapshot under its incoming name. */
async function create(count: number): Promise<{ readonly fixture: LogFixture; readonly snapshot: string }> {
  const fixture = await new LogFixture().open()
  await fixture.snapshot()
  await fixture.appendAll(1, 10)
  await fixture.snapshot()
  await fixture.appendAll(11, 30)
  await fixture.log.close()
  const other = await new LogFixture().open()
  await other.appendAll(1, count)
  const snapshot = await other.snapshot()
  await other.log.close()
  const bytes = await other.disk.readFile(`${FOLDER}/${snapshot}`)
  fixture.disk.putFile(`${FOLDER}/${incomingName(snapshot)}`, bytes)
  return { fixture, snapshot }
}

describe('a replacement of all files', () => {
  it.each([
    [5, 'another name'],
    [10, 'the name of an old snapshot'],
  ])('of %i transactions, with %s, happens as a whole, whenever power is cut', async (count) => {
    for (let operations = 0; ; operations++) {
      const { fixture, snapshot } = await create(count)
      const { disk } = fixture
      let left = operations
      disk.injectFault = () => {
        if (left-- === 0) throw new Error('crash')
      }
      const isDone = await replaceAllFiles(disk, silentLogger, FOLDERS, snapshot).then(
        () => true,
        () => false,
      )
      disk.injectFault = () => {}
      disk.powerCut()
      const { lastZxid, replayed } = await fixture.recover()
      expect([30, count], `after ${operations} operations`).toContain(lastZxid)
      const names = fixture.fileNames()
      expect(names.some((name) => /^(?:incoming\.|replacement)/.test(name))).toBe(false)
      if (lastZxid === count) {
        expect(replayed).toBe(0)
        expect(names.filter((name) => !name.startsWith('set-aside/'))).toEqual([snapshot])
        const kept = names.flatMap((name) => /^set-aside\/\d+\.(.*)/.exec(name)?.[1] ?? [])
        expect([...new Set(kept)].toSorted()).toEqual(['log.1', 'snapshot.0', 'snapshot.a'])
      }
      if (!isDone) continue
      expect(lastZxid).toBe(count)
      return
    }
  })

  it('takes as many syncs for many logs and snapshots as for few', async () => {
    const syncs = async (more: number): Promise<number> => {
      const { fixture, snapshot } = await create(5)
      for (let i = 1; i <= more; i++) {
        fixture.disk.putFile(`${FOLDER}/log.10${i}`, new Uint8Array())
        fixture.disk.putFile(`${FOLDER}/snapshot.10${i}`, new Uint8Array())
      }
      let count = 0
      fixture.disk.injectFault = (operation) => {
        if (operation === 'sync') count++
        return undefined
      }
      await replaceAllFiles(fixture.disk, silentLogger, FOLDERS, snapshot)
      return count
    }
    expect(await syncs(9)).toBe(await syncs(0))
  })

  it('is finished by a start, where the decision has a line end or none', async () => {
    for (const end of ['\n', '']) {
      const { fixture, snapshot } = await create(5)
      fixture.disk.putFile(`${FOLDER}/replacement`, new TextEncoder().encode(`${snapshot}${end}`))
      await finishReplacement(fixture.disk, silentLogger, FOLDERS)
      expect((await fixture.recover()).lastZxid).toBe(5)
    }
  })

  it('whose snapshot is missing leaves the old files, and says what to do', async () => {
    const { fixture, snapshot } = await create(5)
    fixture.disk.putFile(`${FOLDER}/replacement`, new TextEncoder().encode(snapshot))
    await fixture.disk.remove(`${FOLDER}/${incomingName(snapshot)}`)
    await expect(finishReplacement(fixture.disk, silentLogger, FOLDERS)).rejects.toThrow(
      `Expected ${snapshot}, which replaces all other files, got no such file in ${FOLDER}. Copy version-2`,
    )
    expect(fixture.fileNames()).toEqual(expect.arrayContaining(['log.1', 'snapshot.0', 'snapshot.a']))
  })

  it('that was not decided leaves the old files', async () => {
    const { fixture } = await create(5)
    await finishReplacement(fixture.disk, silentLogger, FOLDERS)
    expect(fixture.fileNames().toSorted()).toEqual(['log.1', 'snapshot.0', 'snapshot.a'])
  })
})
