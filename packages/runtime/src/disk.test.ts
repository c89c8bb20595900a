// oxlint-disable no-restricted-imports -- the node disk is tested in a real folder
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { platform, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Disk } from './disk.ts'
import { MemoryDisk } from './memory-disk.ts'
import { NodeDisk } from './node/disk.ts'
import { nodeSystem } from './node/index.ts'
import { SeededRandom } from './seeded-random.ts'

const real = mkdtempSync(join(tmpdir(), 'zabra-disk-'))
afterAll(() => rmSync(real, { recursive: true }))

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const bytes = (value: string): Uint8Array => new TextEncoder().encode(value)

const disks: [string, Disk, string][] = [
  ['NodeDisk', new NodeDisk(), real],
  ['MemoryDisk', new MemoryDisk(), '/memory'],
]

describe.each(disks)('%s', (_, disk, root) => {
  it('writes, reads, truncates and lists files', async () => {
    const folder = `${root}/files`
    await disk.makeFolder(folder)
    await disk.makeFolder(folder)
    const writer = await disk.openWrite(`${folder}/a`, { create: true, durable: true })
    await writer.write(bytes('hello'), 0)
    await writer.write(bytes('p!'), 3)
    await writer.truncate(4)
    await writer.truncate(6)
    await writer.sync()
    await writer.close()
    expect(await disk.readFile(`${folder}/a`)).toEqual(Uint8Array.of(...bytes('help'), 0, 0))
    expect(await disk.size(`${folder}/a`)).toBe(6)
    expect(await disk.modifiedAt(`${folder}/a`)).toSatisfy(Number.isInteger)
    const reader = await disk.openRead(`${folder}/a`)
    const into = new Uint8Array(10)
    expect(await reader.read(into, 2)).toBe(4)
    expect(text(into.subarray(0, 2))).toBe('lp')
    expect(await reader.size()).toBe(6)
    await reader.close()
    await disk.rename(`${folder}/a`, `${folder}/b`)
    await disk.syncFolder(folder)
    expect(await disk.list(folder)).toEqual(['b'])
    await disk.remove(`${folder}/b`)
    expect(await disk.exists(`${folder}/b`)).toBe(false)
    const { free, size } = await disk.space(folder)
    expect(free).toBeGreaterThan(0)
    expect(size).toBeGreaterThan(free)
    expect(await disk.deviceOf?.(folder)).toBe(await disk.deviceOf?.(root))
  })

  it('replaces a file', async () => {
    await disk.makeFolder(root)
    await disk.replaceFile(`${root}/epoch`, bytes('first, longer'))
    await disk.replaceFile(`${root}/epoch`, bytes('second'))
    expect(text(await disk.readFile(`${root}/epoch`))).toBe('second')
    expect((await disk.list(root)).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  it('creates a file with its contents once, of several callers for one', async () => {
    const folder = `${root}/created`
    await disk.makeFolder(folder)
    const created = await Promise.allSettled(
      Array.from({ length: 20 }, (_unused, at) => disk.createFile(`${folder}/a`, bytes(`${at}`.repeat(3)))),
    )
    const winner = created.findIndex(({ status }) => status === 'fulfilled')
    expect(text(await disk.readFile(`${folder}/a`))).toBe(`${winner}`.repeat(3))
    expect(created.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(created).toContainEqual({
      status: 'rejected',
      reason: expect.objectContaining({ name: 'DiskError', code: 'EEXIST', path: `${folder}/a` }) as unknown,
    })
    expect(await disk.list(folder)).toEqual(['a'])
  })

  it('renames a file to a new name, and to none that is taken', async () => {
    const folder = `${root}/renamed`
    await disk.makeFolder(folder)
    for (const name of ['a', 'b']) await disk.replaceFile(`${folder}/${name}`, bytes(name))
    await expect(disk.renameNew(`${folder}/a`, `${folder}/b`)).rejects.toMatchObject({
      name: 'DiskError',
      code: 'EEXIST',
      path: `${folder}/b`,
    })
    await disk.renameNew(`${folder}/a`, `${folder}/c`)
    expect((await disk.list(folder)).toSorted()).toEqual(['b', 'c'])
    expect(text(await disk.readFile(`${folder}/b`))).toBe('b')
    expect(text(await disk.readFile(`${folder}/c`))).toBe('a')
  })

  it('rejects with a DiskError that has the path and the code', async () => {
    const missing = `${root}/none`
    await expect(disk.readFile(missing)).rejects.toMatchObject({
      name: 'DiskError',
      code: 'ENOENT',
      path: missing,
    })
    await expect(disk.openRead(missing)).rejects.toMatchObject({ name: 'DiskError', code: 'ENOENT' })
    await expect(disk.list(`${root}/nowhere`)).rejects.toMatchObject({ name: 'DiskError', code: 'ENOENT' })
    await disk.replaceFile(`${root}/there`, bytes('x'))
    const again = disk.openWrite(`${root}/there`, { create: true, durable: false })
    await expect(again).rejects.toMatchObject({ name: 'DiskError', code: 'EEXIST' })
  })
})

describe('NodeDisk', () => {
  it.skipIf(platform() === 'win32')('resolves links', async () => {
    const folder = realpathSync(real)
    mkdirSync(join(folder, 'linked'))
    symlinkSync(join(folder, 'linked'), join(folder, 'link'))
    expect(await new NodeDisk().realPath(join(folder, 'link'))).toBe(join(folder, 'linked'))
    await expect(new NodeDisk().realPath(join(folder, 'none'))).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('leaves no file where one that it creates cannot be written, and names that one', async () => {
    const folder = mkdtempSync(join(real, 'full-'))
    const disk = new NodeDisk()
    // As on a full disk, the file is there by the time its contents are refused.
    const refused = (function* () {
      yield bytes('a')
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
    })()
    const created = disk.createFile(`${folder}/a`, refused as unknown as Uint8Array)
    await expect(created).rejects.toMatchObject({ code: 'ENOSPC', path: `${folder}/a` })
    expect(await disk.list(folder)).toEqual([])
  })

  it.skipIf(platform() !== 'linux')('closes a file that it cannot protect', async () => {
    const path = join(real, 'unprotected')
    // The system keeps the modes of such files.
    symlinkSync('/proc/self/comm', `${path}.tmp`)
    const before = nodeSystem.fileDescriptors().open
    for (let i = 0; i < 10; i++)
      await expect(new NodeDisk().replaceFile(path, bytes('s'), { isSecret: true })).rejects.toMatchObject({
        code: 'EPERM',
      })
    expect(nodeSystem.fileDescriptors().open).toBe(before)
  })

  it.skipIf(platform() === 'win32')('says who may use a file', async () => {
    const disk = new NodeDisk()
    const path = `${real}/secret`
    await disk.replaceFile(path, bytes('s'), { isSecret: true })
    const isRoots = statSync(path).uid === 0
    expect(await disk.modeOf(path)).toEqual({ bits: 0o600, isRoots })
    chmodSync(path, 0o664)
    expect(await disk.modeOf(path)).toEqual({ bits: 0o664, isRoots })
    await expect(disk.modeOf(`${real}/none`)).rejects.toThrow(/ENOENT/)
  })

  it('creates a folder with its parents, and names the path where it cannot', async () => {
    const disk = new NodeDisk()
    await disk.makeFolder(`${real}/deep/er/and/deeper`)
    expect(await disk.list(`${real}/deep/er/and`)).toEqual(['deeper'])
    await disk.replaceFile(`${real}/file`, bytes('x'))
    await Promise.all(Array.from({ length: 50 }, () => disk.makeFolder(`${real}/many/at/once`)))
    expect(await disk.exists(`${real}/many/at/once`)).toBe(true)
    await expect(disk.makeFolder(`${real}/file`)).rejects.toMatchObject({
      code: 'ENOTDIR',
      message: `Cannot make the folder ${real}/file: a file is there`,
    })
    await expect(disk.makeFolder(`${real}/file/below`)).rejects.toMatchObject({ code: 'ENOTDIR' })
  })

  it('says how long a file may be that is read whole', async () => {
    const path = `${real}/long`
    await new NodeDisk().replaceFile(path, bytes(''))
    truncateSync(path, (64 << 20) + 1)
    await expect(new NodeDisk().readFile(path)).rejects.toMatchObject({
      code: 'EFBIG',
      message: `Cannot read ${path}: EFBIG: expected at most 67108864 bytes`,
    })
  })

  it.runIf(platform() === 'linux')('rejects where the system forbids folders', async () => {
    const made = new NodeDisk().makeFolder('/proc/zabra/data')
    await expect(made).rejects.toMatchObject({ name: 'DiskError', code: 'ENOENT', path: '/proc/zabra' })
  })
})

describe('MemoryDisk', () => {
  it('loses contents and names that were not synced in a power cut', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/d')
    const kept = await disk.openWrite('/d/kept', { create: true, durable: true })
    await kept.write(bytes('durable'), 0)
    await disk.syncFolder('/d')
    const half = await disk.openWrite('/d/half', { create: true, durable: false })
    await half.write(bytes('synced'), 0)
    await half.sync()
    await disk.syncFolder('/d')
    await half.write(bytes(' and not'), 6)
    const nameless = await disk.openWrite('/d/nameless', { create: true, durable: true })
    await nameless.write(bytes('its name is not durable'), 0)
    disk.powerCut()
    expect(await disk.list('/d')).toEqual(['kept', 'half'])
    expect(text(await disk.readFile('/d/kept'))).toBe('durable')
    expect(text(await disk.readFile('/d/half'))).toBe('synced')
  })

  it('has after a power cut what each file was at its last sync, in 200 random histories', async () => {
    const random = new SeededRandom(1)
    for (let history = 0; history < 200; history++) {
      const disk = new MemoryDisk()
      disk.putFile('/file', bytes('x'.repeat(random.below(20))))
      let writer = await disk.openWrite('/file', { create: false, durable: false })
      let durable = await disk.readFile('/file')
      let current = [...durable]
      for (let step = 0; step < 30; step++) {
        const part = random.bytes(random.below(12))
        const position = random.below(current.length + 8)
        switch (random.below(5)) {
          case 0:
          case 1:
            await writer.write(part, position)
            while (part.length > 0 && current.length < position) current.push(0)
            current.splice(position, part.length, ...part)
            break
          case 2:
            await writer.truncate(position)
            current.length = Math.min(current.length, position)
            while (current.length < position) current.push(0)
            break
          case 3:
            await writer.sync()
            durable = Uint8Array.from(current)
            break
          default:
            disk.powerCut()
            writer = await disk.openWrite('/file', { create: false, durable: false })
            current = [...durable]
        }
        expect([...(await disk.readFile('/file'))], `history ${history}, step ${step}`).toEqual(current)
      }
    }
  })

  it('fails with an injected fault, after some written bytes where it says so', async () => {
    const disk = new MemoryDisk()
    await disk.makeFolder('/d')
    const writer = await disk.openWrite('/d/a', { create: true, durable: true })
    disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC', writtenBytes: 2 } : undefined)
    await expect(writer.write(bytes('abc'), 0)).rejects.toMatchObject({ code: 'ENOSPC' })
    disk.injectFault = undefined
    expect(text(await disk.readFile('/d/a'))).toBe('ab')
  })
})
