import { ManualClock, MemoryDisk, silentLogger } from '@zabra/runtime'
import { holdWrites } from '@zabra/testkit'
import { expect, it } from 'vitest'
import { waitForSpace } from './space-probe.ts'
import { FOLDER } from './testing/log-fixture.ts'

const PATH = `${FOLDER}/space-probe.tmp`
const MIB = 1 << 20

/** A wait on a disk that has `free` bytes. */
function given() {
  const disk = new MemoryDisk()
  const clock = new ManualClock()
  const state = { found: 0, free: 0, lines: [] as unknown[] }
  disk.injectFault = (call, _, length) =>
    call === 'write' && length > state.free ? { code: 'ENOSPC', writtenBytes: state.free } : undefined
  const logger = { ...silentLogger, debug: (context: unknown) => void state.lines.push(context) }
  const end = waitForSpace({ disk, clock, logger, folder: FOLDER }, () => state.found++)
  /** Advances the clock and lets the probe end. */
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await clock.untilIdle()
  }
  return { disk, state, pass, end }
}

it('waitForSpace tries to write 1 MiB once a second until that succeeds, and leaves no file', async () => {
  const { disk, state, pass } = given()
  await pass(999)
  expect(disk.writes).toBe(0)
  await pass(1)
  expect([disk.writes, state.found]).toEqual([1, 0])
  expect(state.lines).toEqual([{ folder: FOLDER, error: expect.stringContaining('ENOSPC') as string }])
  state.free = MIB - 1
  await pass(999)
  expect(disk.writes).toBe(1)
  await pass(1)
  expect([disk.writes, state.found, disk.paths()]).toEqual([2, 0, []])
  state.free = MIB
  await pass(1000)
  expect([disk.writes, state.found, disk.paths()]).toEqual([3, 1, []])
  await pass(10_000)
  expect([disk.writes, state.found]).toEqual([3, 1])
})

it('waitForSpace replaces a file that an earlier process left', async () => {
  const { disk, state, pass } = given()
  disk.putFile(PATH, new Uint8Array(5))
  state.free = MIB
  await pass(1000)
  expect([state.found, disk.paths()]).toEqual([1, []])
})

it('waitForSpace writes nothing once it has ended', async () => {
  const { disk, state, pass, end } = given()
  state.free = MIB
  await end()
  await pass(5000)
  expect([disk.writes, state.found]).toEqual([0, 0])
})

it.each([0, MIB])(
  'waitForSpace ends when the probe in flight has left no file, and reports no space (%i free)',
  async (free) => {
    const { disk, state, pass, end } = given()
    state.free = free
    const release = holdWrites(disk)
    await pass(1000)
    expect(disk.paths()).toEqual([PATH])
    const ended = end()
    release()
    await ended
    await pass(5000)
    expect([disk.paths(), disk.writes, state.found]).toEqual([[], 1, 0])
  },
)

it('waitForSpace writes to the disk itself, since a file system may find a lack of space only then', async () => {
  const { disk, state, pass } = given()
  const opened: unknown[] = []
  const openWrite = disk.openWrite.bind(disk)
  disk.openWrite = (path, options) => {
    opened.push(options)
    return openWrite(path, options)
  }
  state.free = MIB
  await pass(1000)
  expect(opened).toEqual([{ create: true, durable: true }])
})
