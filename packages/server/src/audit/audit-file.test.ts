import { ManualClock, silentLogger, type MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { nodeCryptography } from '@zabra/runtime/node'
import { ChainReader, NO_LINE, type ChainState } from '../core/audit-chain.ts'
import { AuditChain } from './audit-chain.ts'
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

  it('is closed within seconds where the disk does not answer', async () => {
    const { file, disk, clock } = await openFile()
    disk.beforeWrite = () => new Promise(() => {})
    file.append('one')
    let isClosed = false
    void file.close().then(() => (isClosed = true))
    await clock.untilIdle()
    expect(isClosed).toBe(false)
    clock.advance(3000)
    await clock.untilIdle()
    expect(isClosed).toBe(true)
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

  it('replaces no renamed file by another, which would be written to the disk at once', async () => {
    const { file, disk, clock } = await openFile()
    const rename = disk.rename.bind(disk)
    const replaced: string[] = []
    disk.rename = async (from, to) => {
      if (await disk.exists(to)) replaced.push(to)
      await rename(from, to)
    }
    for (let i = 0; i < 5; i++) {
      file.append('x'.repeat(4000))
      clock.advance(10)
      await clock.untilIdle()
    }
    await file.close()
    expect([disk.paths().length, replaced]).toEqual([3, []])
  })

  it.each([PATH, `${PATH}.1`, `${PATH}.2`])(
    'removes one file only while the rename of %s fails and is tried again',
    async (failing) => {
      const { file, disk, clock, text } = await openFile({ maxFiles: 3 })
      const append = async (line: string): Promise<void> => {
        file.append(line + 'x'.repeat(4000))
        clock.advance(10)
        await clock.untilIdle()
      }
      for (let i = 0; i < 4; i++) await append(`${i}`)
      disk.injectFault = (operation, path) =>
        operation === 'rename' && path === failing ? { code: 'EIO' } : undefined
      await append('4')
      for (let retry = 0; retry < 4; retry++) {
        clock.advance(1000)
        await clock.untilIdle()
      }
      disk.injectFault = undefined
      clock.advance(1000)
      await clock.untilIdle()
      await file.close()
      const first = await Promise.all(
        disk
          .paths()
          .toSorted()
          .map(async (path) => (await text(path))[0]),
      )
      expect(first).toEqual(['4', '3', '2', '1'])
    },
  )

  it('goes on when the last file could not be removed, and removes nothing else', async () => {
    const { file, disk, clock, text } = await openFile({ maxFiles: 1 })
    const append = async (line: string): Promise<void> => {
      file.append(line + 'x'.repeat(4000))
      clock.advance(10)
      await clock.untilIdle()
    }
    for (const line of ['0', '1']) await append(line)
    disk.injectFault = (operation) => (operation === 'remove' ? { code: 'EPERM' } : undefined)
    await append('2')
    expect([(await text())[0], (await text(`${PATH}.1`))[0], file.isFailing]).toEqual(['1', '0', true])
    disk.injectFault = undefined
    clock.advance(1000)
    await clock.untilIdle()
    await file.close()
    expect([(await text())[0], (await text(`${PATH}.1`))[0]]).toEqual(['2', '1'])
  })

  it('keeps no renamed file where none is wanted, and its chain goes on', async () => {
    const line = (count: number): string => `{"count":${count},"padding":"${'x'.repeat(3900)}"}`
    const chain = new AuditChain(nodeCryptography, () => '{}')
    const { file, disk, clock, text } = await openFile({ maxFiles: 0, chain })
    for (let i = 0; i < 3; i++) {
      if (i === 2) disk.injectFault = (operation) => (operation === 'remove' ? { code: 'EIO' } : undefined)
      file.append(line(i))
      clock.advance(10)
      await clock.untilIdle()
    }
    const before = chain.head
    disk.injectFault = undefined
    clock.advance(1000)
    await clock.untilIdle()
    await file.close()
    expect(disk.paths()).toEqual([PATH])
    expect(JSON.parse(await text())).toMatchObject({ prev: before, count: 2 })
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

describe('an audit file whose lines are linked', () => {
  const sha256 = () => nodeCryptography.sha256()
  let number = 0

  const open = (disk?: MemoryDisk, options: Partial<AuditFileOptions> = {}) =>
    openFile(
      { chain: new AuditChain(nodeCryptography, () => '{"op":"auditLineTorn"}'), maxFiles: 9, ...options },
      disk,
    )

  const add = (file: AuditFile, ...texts: readonly string[]): void => {
    for (const text of texts) file.append(`{"id":${++number},"text":"${text}"}`)
  }

  /** Follows the chain through files. */
  async function follow(disk: MemoryDisk, ...paths: readonly string[]): Promise<ChainState> {
    const reader = new ChainReader(sha256)
    for (const path of paths) {
      reader.beginFile(path)
      reader.push(await disk.readFile(path))
    }
    return reader.end()
  }

  it('are one chain over rotations and restarts, each line as it was after its hash', async () => {
    const { file, disk, clock } = await open()
    for (let i = 0; i < 3; i++) {
      add(file, 'x'.repeat(1500), 'é')
      clock.advance(10)
      await clock.untilIdle()
    }
    await file.close()
    const again = await open(disk)
    add(again.file, 'last')
    await again.file.close()
    expect(disk.paths().toSorted()).toEqual([PATH, `${PATH}.1`])
    const state = await follow(disk, `${PATH}.1`, PATH)
    expect(state).toMatchObject({ lines: 7, first: NO_LINE, fault: undefined, tornAt: [] })
    const [line] = (await again.text()).split('\n').slice(-2)
    expect(line).toMatch(/^\{"prev":"\w{64}","id":7,"text":"last"\}$/)
  })

  it('go on in a new file after a restart that found the last one renamed', async () => {
    const { file, disk } = await open()
    add(file, 'a')
    await file.close()
    await disk.rename(PATH, `${PATH}.1`)
    const again = await open(disk)
    add(again.file, 'b')
    await again.file.close()
    expect(await follow(disk, `${PATH}.1`, PATH)).toMatchObject({ lines: 2, fault: undefined })
  })

  it('go on after a tool has renamed the file', async () => {
    const { file, disk, clock } = await open()
    add(file, 'a')
    clock.advance(10)
    await clock.untilIdle()
    await disk.rename(PATH, '/data/old.log')
    file.reopen()
    add(file, 'b')
    await file.close()
    expect(await follow(disk, '/data/old.log', PATH)).toMatchObject({ lines: 2, fault: undefined })
  })

  it('close a line that a crash has cut, wherever it was cut, and say so', async () => {
    const { file, disk } = await open()
    add(file, 'a', 'b', 'c')
    await file.close()
    const whole = await disk.readFile(PATH)
    for (const cut of [1, 2, 30, 90]) {
      disk.putFile(PATH, whole.slice(0, -cut))
      const again = await open(disk)
      add(again.file, 'd')
      await again.file.close()
      expect(await follow(disk, PATH)).toMatchObject({
        lines: 5,
        fault: undefined,
        tornAt: [{ file: PATH, line: 3 }],
      })
      expect(await again.text()).toMatch(/\n\{"prev":"\w{64}","torn":"\w{64}","op":"auditLineTorn"\}\n/)
    }
  })

  it('begin behind the lines of a file that were not linked', async () => {
    const { file, disk } = await openFile()
    file.append('{"id":1}')
    await file.close()
    const again = await open(disk)
    add(again.file, 'a')
    await again.file.close()
    expect(await follow(disk, PATH)).toMatchObject({ lines: 2, unlinkedLines: 1, fault: undefined })
  })

  it.each([
    ['takes back', false],
    ['cannot take back', true],
  ])('stay a chain when a write fails in the middle and the disk %s its first bytes', async (_, isStuck) => {
    const { file, disk, clock } = await open()
    add(file, 'a')
    clock.advance(10)
    await clock.untilIdle()
    disk.injectFault = (operation) =>
      operation === 'write' || (isStuck && operation === 'truncate')
        ? { code: 'ENOSPC', writtenBytes: 40 }
        : undefined
    add(file, 'b', 'c')
    clock.advance(10)
    await clock.untilIdle()
    disk.injectFault = undefined
    clock.advance(1000)
    await clock.untilIdle()
    add(file, 'd')
    await file.close()
    const state = await follow(disk, PATH)
    expect(state).toMatchObject({ lines: isStuck ? 6 : 4, fault: undefined })
    expect(state.tornAt).toHaveLength(isStuck ? 1 : 0)
  })

  it('are followed by the head in the log of the server when the file is renamed or closed', async () => {
    const heads: unknown[] = []
    const logger = {
      ...silentLogger,
      info: (context: object) => void heads.push((context as { head: string }).head),
    }
    const { disk } = await open()
    const clock = new ManualClock()
    const chain = new AuditChain(nodeCryptography, () => '{}')
    const options = { path: PATH, maxBytes: 4096, maxFiles: 2, fsync: false, lostLine: String, chain }
    const file = new AuditFile(options, { disk, clock, logger })
    await file.open()
    for (let i = 0; i < 2; i++) {
      add(file, 'x'.repeat(4000))
      clock.advance(10)
      await clock.untilIdle()
    }
    await file.close()
    const states = [await follow(disk, `${PATH}.1`), await follow(disk, `${PATH}.1`, PATH)]
    expect(heads).toEqual(states.map(({ head }) => head))
  })
})

describe('a failed write of an audit file', () => {
  it('leaves no line twice', async () => {
    const { file, disk, clock, text } = await openFile()
    file.append('one')
    disk.injectFault = (operation) => (operation === 'write' ? { code: 'EIO', writtenBytes: 6 } : undefined)
    file.append('two')
    clock.advance(10)
    await clock.untilIdle()
    disk.injectFault = undefined
    clock.advance(1000)
    await clock.untilIdle()
    await file.close()
    expect(await text()).toBe('one\ntwo\n')
  })
})
