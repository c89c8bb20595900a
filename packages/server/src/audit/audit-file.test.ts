import { ManualClock, silentLogger, type MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { AuditFile, type AuditFileOptions } from './audit-file.ts'

const PATH = '/data/audit.log'

async function openFile(options: Partial<AuditFileOptions> = {}, disk?: MemoryDisk) {
  const clock = new ManualClock()
  const on = disk ?? (await diskWithFolder('/data'))
  const lostLine = (count: number): string => `lost ${count}`
  const all = { path: PATH, maxBytes: 4096, maxFiles: 2, fsync: false, lostLine, ...options }
  const file = new AuditFile(all, { disk: on, clock, logger: silentLogger })
  await file.open()
  const text = async (path = PATH): Promise<string> => new TextDecoder().decode(await on.readFile(path))
  return { file, clock, disk: on, text }
}

describe('an audit file', () => {
  it('is continued after a restart, after a newline where the last line is cut', async () => {
    const { file, disk } = await openFile()
    file.append('one')
    await file.close()
    disk.putFile(PATH, new TextEncoder().encode('one\ntw'))
    const again = await openFile({}, disk)
    again.file.append('three')
    await again.file.close()
    expect(await again.text()).toBe('one\ntw\nthree\n')
  })

  it('is renamed at its limit, and the oldest renamed file is removed', async () => {
    const { file, disk, clock, text } = await openFile()
    for (let i = 0; i < 4; i++) {
      file.append(`${i}${'x'.repeat(4000)}`)
      clock.advance(10)
      await clock.untilIdle()
    }
    await file.close()
    expect(disk.paths().toSorted()).toEqual([PATH, `${PATH}.1`, `${PATH}.2`])
    expect([(await text())[0], (await text(`${PATH}.1`))[0], (await text(`${PATH}.2`))[0]]).toEqual([
      '3',
      '2',
      '1',
    ])
  })

  it('is created again after a tool has renamed it', async () => {
    const { file, disk, text } = await openFile()
    file.append('one')
    await disk.rename(PATH, '/data/old.log')
    file.reopen()
    file.append('two')
    await file.close()
    expect(await text()).toContain('two\n')
  })

  it('says how many lines are lost when the disk is slower than they come', async () => {
    const { file, disk, text } = await openFile({ maxBytes: 100_000_000 })
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    disk.beforeWrite = () => held
    const line = 'x'.repeat(1023)
    const kept = Array.from({ length: 4100 }, () => file.append(line)).filter(Boolean).length
    expect(kept).toBe(4096)
    expect(file.isFailing).toBe(true)
    release()
    await file.close()
    const lines = (await text()).trimEnd().split('\n')
    expect(lines.filter((one) => one === line)).toHaveLength(kept)
    expect(lines.filter((one) => one.startsWith('lost'))).toEqual(['lost 4'])
  })

  it('counts the bytes of the lines that wait, not their characters', async () => {
    const { file, disk } = await openFile({ maxBytes: 100_000_000 })
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    disk.beforeWrite = () => held
    const line = `${'€'.repeat(341)}`
    const kept = Array.from({ length: 5000 }, () => file.append(line)).filter(Boolean).length
    expect(kept).toBe(4096)
    release()
    await file.close()
  })

  it('is written once for the lines of ten milliseconds', async () => {
    const { file, disk, clock, text } = await openFile()
    let writes = 0
    disk.injectFault = (operation) => (operation === 'write' ? void writes++ : undefined)
    for (let i = 0; i < 5; i++) file.append(`${i}`)
    await clock.untilIdle()
    expect(writes).toBe(0)
    clock.advance(10)
    await clock.untilIdle()
    expect([writes, await text()]).toEqual([1, '0\n1\n2\n3\n4\n'])
    await file.close()
  })

  it('does not try a failed write again before a second has passed', async () => {
    const { file, disk, clock, text } = await openFile()
    let attempts = 0
    disk.injectFault = (operation) => (operation === 'write' ? (attempts++, { code: 'EIO' }) : undefined)
    for (let i = 0; i < 5; i++) {
      file.append(`${i}`)
      clock.advance(10)
      await clock.untilIdle()
    }
    expect(attempts).toBe(1)
    disk.injectFault = undefined
    clock.advance(1000)
    await clock.untilIdle()
    await file.close()
    expect((await text()).trimEnd().split('\n')).toEqual(['0', '1', '2', '3', '4'])
  })
})
