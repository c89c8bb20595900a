import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { LogFile, type LogFileOptions } from './log-file.ts'
import { FOLDER } from './testing/log-fixture.ts'

const PATH = `${FOLDER}/log.1`

/** A log file on a disk that notes each call. */
function given(options: Partial<LogFileOptions> = {}) {
  const disk = new MemoryDisk()
  const extensions: number[] = []
  const calls: string[] = []
  disk.injectFault = (call, path) => void calls.push(`${call} ${path}`)
  const file = new LogFile(
    { disk, folder: FOLDER, isDurable: true, preallocateBytes: 0, ...options },
    (bytes) => extensions.push(bytes),
  )
  return { disk, file, extensions, calls }
}

const bytes = (length: number, value = 7): Uint8Array => new Uint8Array(length).fill(value)

describe('LogFile', () => {
  it('replaces a file of the same name', async () => {
    const { disk, file } = given()
    disk.putFile(PATH, bytes(1000, 1))
    await file.create(1)
    expect([file.path, file.position]).toEqual([PATH, 0])
    await file.write([bytes(20)], true)
    expect(await disk.readFile(PATH)).toEqual(bytes(20))
  })

  it('begins a second file from its start and leaves the first one', async () => {
    const { disk, file, extensions } = given()
    await file.create(1)
    await file.write([bytes(50)], true)
    await file.create(10)
    await file.write([bytes(30)], true)
    expect([await disk.size(PATH), await disk.size(`${FOLDER}/log.a`), file.position]).toEqual([50, 30, 30])
    expect(extensions).toEqual([34, 14])
  })

  it.each([true, false])('appends, durably unless that is off (%s)', async (isDurable) => {
    const { disk, file } = given({ isDurable })
    await file.create(1)
    await file.write([bytes(20)], true)
    await file.write([bytes(10, 8)], false)
    expect(file.position).toBe(30)
    expect(await disk.readFile(PATH)).toEqual(new Uint8Array([...bytes(20), ...bytes(10, 8)]))
    disk.powerCut()
    expect(await disk.size(PATH)).toBe(isDurable ? 30 : 0)
  })

  it('syncs the folder after the first bytes alone', async () => {
    const { file, calls } = given()
    await file.create(1)
    await file.write([bytes(20)], true)
    expect(calls).toEqual([`open ${PATH}`, `write ${PATH}`, `sync ${FOLDER}`])
    await file.write([bytes(20)], false)
    expect(calls.slice(3)).toEqual([`write ${PATH}`])
  })

  it('extends the file by a step when less than 4 KiB are left, and counts its header for nothing', async () => {
    const { disk, file, extensions, calls } = given({ preallocateBytes: 8192 })
    await file.create(1)
    const sizes: number[] = []
    for (const [length, isNew] of [
      [16, true],
      [4095, false],
      [1, false],
      [1, false],
      [30_000, false],
      [1, false],
    ] as const) {
      await file.write([bytes(length)], isNew)
      sizes.push(await disk.size(PATH))
    }
    expect(sizes).toEqual([8208, 8208, 8208, 16_400, 34_113, 42_305])
    expect(extensions).toEqual([8192, 8192, 17_713, 8192])
    expect(calls.filter((call) => call.startsWith('truncate'))).toHaveLength(4)
  })

  it('is not extended ahead without a step, but says how it grows', async () => {
    const { disk, file, extensions, calls } = given()
    await file.create(1)
    await file.write([bytes(16)], true)
    await file.write([bytes(100)], false)
    expect([await disk.size(PATH), extensions]).toEqual([116, [100]])
    expect(calls.join()).not.toContain('truncate')
  })
})

describe('LogFile after a write that failed', () => {
  it('cuts the file to what was whole, durably', async () => {
    const { disk, file } = given()
    await file.create(1)
    await file.write([bytes(20)], true)
    disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC', writtenBytes: 5 } : undefined)
    await expect(file.write([bytes(9)], false)).rejects.toThrow('ENOSPC')
    disk.injectFault = undefined
    await file.rollBack(false)
    disk.powerCut()
    expect(await disk.readFile(PATH)).toEqual(bytes(20))
  })

  it('takes back the pieces before the one that failed', async () => {
    const { disk, file } = given()
    await file.create(1)
    await file.write([bytes(5, 1), bytes(6, 2), bytes(9, 3)], true)
    let writes = 0
    disk.injectFault = (call) => (call === 'write' && ++writes === 3 ? { code: 'ENOSPC' } : undefined)
    await expect(file.write([bytes(5), bytes(5), bytes(5)], false)).rejects.toThrow('ENOSPC')
    disk.injectFault = undefined
    expect(file.position).toBe(20)
    await file.rollBack(false)
    expect(await disk.readFile(PATH)).toEqual(
      new Uint8Array([...bytes(5, 1), ...bytes(6, 2), ...bytes(9, 3)]),
    )
  })

  it('removes a new file, durably', async () => {
    const { disk, file } = given()
    await file.create(1)
    await file.write([bytes(20)], true)
    await file.rollBack(true)
    disk.powerCut()
    expect(disk.paths()).toEqual([])
  })

  it('accepts that a new file does not exist', async () => {
    const { disk, file, calls } = given()
    disk.injectFault = (call) => (call === 'open' ? { code: 'EMFILE' } : undefined)
    await expect(file.create(1)).rejects.toThrow('EMFILE')
    disk.injectFault = (call, path) => void calls.push(`${call} ${path}`)
    await file.rollBack(true)
    expect(calls).toEqual([])
  })

  it.each([true, false])('closes the file once (new: %s)', async (isNew) => {
    const { disk, file } = given()
    let closed = 0
    const openWrite = disk.openWrite.bind(disk)
    disk.openWrite = async (path, options) => ({
      ...(await openWrite(path, options)),
      close: async () => void closed++,
    })
    await file.create(1)
    await file.write([bytes(20)], true)
    await file.rollBack(isNew)
    await file.close()
    expect(closed).toBe(1)
    await file.create(2)
    await file.create(3)
    expect(closed).toBe(2)
  })
})
