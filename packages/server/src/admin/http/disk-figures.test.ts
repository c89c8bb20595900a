import { ManualClock, MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { DiskFigures } from './disk-figures.ts'

it('figures of the disk are read anew after ten seconds, and are those of the scrape before unless that is a minute ago', async () => {
  const disk = await diskWithFolder('/data')
  const clock = new ManualClock()
  const figures = new DiskFigures(clock, disk)
  const logBytes = async (): Promise<number | undefined> =>
    (await figures.next({ snapshots: '/data', logs: '/data' }))?.sizes?.logs
  const untilRead = async (): Promise<void> => {
    for (let i = 0; i < 50; i++) await Promise.resolve()
  }
  expect(await logBytes()).toBe(0)
  disk.putFile('/data/log.1', new Uint8Array(10))
  clock.advance(9_999)
  expect(await logBytes()).toBe(0)
  await untilRead()
  clock.advance(1)
  expect(await logBytes()).toBe(0)
  await untilRead()
  expect(await logBytes()).toBe(10)
  await untilRead()
  disk.putFile('/data/log.1', new Uint8Array(20))
  clock.advance(60_000)
  expect(await logBytes()).toBe(20)
})

it('figures of a disk that gives none are left out', async () => {
  const disk = new MemoryDisk()
  disk.injectFault = () => ({ code: 'EIO' })
  disk.space = () => Promise.reject(new Error('not here'))
  const report = await new DiskFigures(new ManualClock(), disk).next({ snapshots: '/a', logs: '/b' })
  expect(report).toEqual({ spaces: new Map(), lastSnapshotAt: undefined, sizes: undefined })
})

it('a disk that does not answer holds up no scrape, neither the first one nor one a minute after its last answer', async () => {
  const disk = await diskWithFolder('/data')
  const clock = new ManualClock()
  const answers = disk.space.bind(disk)
  const folders = { snapshots: '/data', logs: '/data' }
  const nextInTime = async (figures: DiskFigures): Promise<unknown> => {
    const asked = figures.next(folders)
    clock.advance(500)
    return asked
  }
  disk.space = () => new Promise(() => {})
  expect(await nextInTime(new DiskFigures(clock, disk))).toBeUndefined()
  disk.space = answers
  const figures = new DiskFigures(clock, disk)
  expect(await figures.next(folders)).toBeDefined()
  disk.space = () => new Promise(() => {})
  clock.advance(60_000)
  expect(await nextInTime(figures)).toBeUndefined()
})
