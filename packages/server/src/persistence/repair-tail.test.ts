import type { DiskWriter, MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it, vi } from 'vitest'
import { ENTRY_END, LOG_HEADER_BYTES } from './log-format.ts'
import type { ScanEnd } from './log-scan.ts'
import { repairTail, rewriteTail } from './repair-tail.ts'
import { FOLDER } from './testing/log-fixture.ts'

const PATH = `${FOLDER}/log.1`
const MIB = 1 << 20
/** What is rewritten at most, and in one write. */
const [TAIL, COPY] = [64 * MIB, MIB]

async function diskWith(length: number): Promise<MemoryDisk> {
  const disk = await diskWithFolder(FOLDER)
  disk.putFile(PATH, new Uint8Array(length).fill(7))
  return disk
}

/** Records what happens to the files that are opened, after `fail` for each step. */
function record(disk: MemoryDisk, fail: (step: string) => void = () => {}): string[] {
  const steps: string[] = []
  const note = (step: string): void => {
    steps.push(step)
    fail(step)
  }
  const openWrite = disk.openWrite.bind(disk)
  disk.openWrite = async (path, options) => {
    const writer = await openWrite(path, options)
    note(`open ${JSON.stringify(options)}`)
    const recorded: DiskWriter = {
      async write(bytes, position) {
        note(`write ${bytes.length} at ${position}`)
        await writer.write(bytes, position)
      },
      async sync() {
        note('sync')
        await writer.sync()
      },
      async truncate(length) {
        note(`truncate ${length}`)
        await writer.truncate(length)
      },
      async close() {
        note('close')
        await writer.close()
      },
    }
    return recorded
  }
  const openRead = disk.openRead.bind(disk)
  disk.openRead = async (path) => {
    const reader = await openRead(path)
    return { ...reader, close: async () => note('close the reader') }
  }
  return steps
}

it.each(['openWrite', 'close of the writer'])(
  'rewriteTail closes its reader where %s is refused',
  async (failing) => {
    const disk = await diskWith(100)
    const steps = record(disk, (step) => {
      if (failing !== 'openWrite' && step === 'close') throw new Error('refused')
    })
    if (failing === 'openWrite') disk.openWrite = () => Promise.reject(new Error('refused'))
    await expect(rewriteTail(disk, FOLDER, PATH, 100)).rejects.toThrow('refused')
    expect(steps).toContain('close the reader')
  },
)

const OPEN = 'open {"create":false,"durable":false}'
const endAt = (end: number, missingEndMark?: number): ScanEnd => ({
  end,
  size: 100,
  entries: 1,
  isTorn: missingEndMark === undefined,
  missingEndMark,
})

describe('repairTail', () => {
  it('removes a log without a whole header, durably', async () => {
    const disk = await diskWith(100)
    await repairTail(disk, FOLDER, PATH, endAt(LOG_HEADER_BYTES - 1))
    disk.powerCut()
    expect(await disk.exists(PATH)).toBe(false)
  })

  it.each([LOG_HEADER_BYTES, 60])('cuts a torn write off at %i, durably', async (end) => {
    const disk = await diskWith(100)
    const steps = record(disk)
    await repairTail(disk, FOLDER, PATH, endAt(end))
    disk.powerCut()
    expect(await disk.readFile(PATH)).toEqual(new Uint8Array(end).fill(7))
    expect(steps).toEqual([OPEN, `truncate ${end}`, 'sync', 'close'])
  })

  it('adds a missing end mark and keeps the entry before it, durably', async () => {
    const disk = await diskWith(100)
    await repairTail(disk, FOLDER, PATH, endAt(60, 99))
    disk.powerCut()
    expect([...(await disk.readFile(PATH))]).toEqual([...new Array<number>(99).fill(7), ENTRY_END])
  })

  it('closes the log when it cannot be synced', async () => {
    const disk = await diskWith(100)
    const steps = record(disk, (step) => {
      if (step === 'sync') throw new Error('EIO')
    })
    await expect(repairTail(disk, FOLDER, PATH, endAt(60))).rejects.toThrow('EIO')
    expect(steps.at(-1)).toBe('close')
  })
})

describe('rewriteTail', () => {
  it.each([
    ['of a header alone', LOG_HEADER_BYTES, [`write ${LOG_HEADER_BYTES} at 0`]],
    ['in one part', COPY, [`write ${COPY} at 0`]],
    ['in parts', 2 * COPY + 5, [`write ${COPY} at 0`, `write ${COPY} at ${COPY}`, `write 5 at ${2 * COPY}`]],
  ])('writes the log %s again, up to its end, and syncs it', async (_, end, writes) => {
    const disk = await diskWith(end + 100)
    const steps = record(disk)
    await rewriteTail(disk, FOLDER, PATH, end)
    expect(steps).toEqual([OPEN, ...writes, 'sync', 'close', 'close the reader'])
    expect((await disk.readFile(PATH)).every((byte) => byte === 7)).toBe(true)
  })

  it('writes only the end of a long log again', async () => {
    const disk = await diskWith(TAIL + 100)
    const steps = record(disk)
    await rewriteTail(disk, FOLDER, PATH, TAIL + 50)
    expect(steps.slice(0, 2)).toEqual([OPEN, `write ${COPY} at 50`])
    expect(steps).toHaveLength(1 + TAIL / COPY + 3)
  })

  it('leaves a log without a whole header alone', async () => {
    const disk = await diskWith(100)
    const openRead = vi.spyOn(disk, 'openRead')
    await rewriteTail(disk, FOLDER, PATH, LOG_HEADER_BYTES - 1)
    expect(openRead).not.toHaveBeenCalled()
  })

  it('closes the log when it cannot be synced', async () => {
    const disk = await diskWith(100)
    const steps = record(disk, (step) => {
      if (step === 'sync') throw new Error('EIO')
    })
    await expect(rewriteTail(disk, FOLDER, PATH, 100)).rejects.toThrow('EIO')
    expect(steps.slice(-2)).toEqual(['close', 'close the reader'])
  })
})
