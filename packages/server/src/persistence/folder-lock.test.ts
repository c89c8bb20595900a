import { DiskError, MemoryDisk } from '@zabra/runtime'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { lockFolder, type LockOwner } from './index.ts'

describe('lockFolder', () => {
  const owner = (pid: number, running: number[] = []): LockOwner => ({
    pid,
    processIdentity: (other) => (other === pid || running.includes(other) ? `${other}-now` : undefined),
  })

  it('rejects a second server while the first process runs, and names that process', async () => {
    const disk = await diskWithFolder('/data')
    disk.putFile('/data/zabra.lock', new TextEncoder().encode('1 a1 1-now\n'))
    const second = lockFolder(disk, '/data', owner(2, [1]), 'b2')
    await expect(second).rejects.toMatchObject({ name: 'FolderLockedError', code: 'ELOCKED' })
    await expect(second).rejects.toThrow(/in use by process 1.*dataDir/)
    await (
      await lockFolder(disk, '/data', owner(2), 'b2')
    )()
    expect(disk.paths()).toEqual([])
  })

  it('rejects a second server of the same process', async () => {
    const disk = await diskWithFolder('/data')
    const unlock = await lockFolder(disk, '/data', owner(1), 'd4')
    await expect(lockFolder(disk, '/data', owner(1), 'e5')).rejects.toThrow('another server of this process')
    await unlock()
    await (
      await lockFolder(disk, '/data', owner(1), 'e5')
    )()
  })

  it('takes over the lock of a process that ended, of this id before a reboot, and a lock file that is malformed', async () => {
    for (const text of ['99 f0 99-now\n', '2 f0 2-before\n', '1 f0 1-before\n', '99\n', 'half', '']) {
      const disk = new MemoryDisk()
      disk.putFile('/data/zabra.lock', new TextEncoder().encode(text))
      const unlock = await lockFolder(disk, '/data', owner(2, [1]), 'c3')
      expect(new TextDecoder().decode(await disk.readFile('/data/zabra.lock'))).toBe('2 c3 2-now\n')
      await unlock()
    }
  })

  it('leaves no open file, and no lock, where the disk refuses to write it', async () => {
    const disk = await diskWithFolder('/data')
    let closed = 0
    const openWrite = disk.openWrite.bind(disk)
    disk.openWrite = async (path, options) => {
      const writer = await openWrite(path, options)
      return {
        write: () => Promise.reject(new DiskError('full', 'ENOSPC', path)),
        sync: () => writer.sync(),
        truncate: (length) => writer.truncate(length),
        close: () => (closed++, writer.close()),
      }
    }
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toMatchObject({ code: 'ENOSPC' })
    expect([closed, disk.paths()]).toEqual([1, []])
  })

  it('takes over the lock of an ended process whose token this process still holds', async () => {
    const disk = await diskWithFolder('/data')
    const owner = (pid: number): LockOwner => ({
      pid,
      processIdentity: (other: number) => (other === pid ? `${pid}` : undefined),
    })
    await lockFolder(disk, '/data', owner(1), 'one')
    const unlock = await lockFolder(disk, '/data', owner(2), 'two')
    await unlock()
    expect(await disk.exists('/data/zabra.lock')).toBe(false)
  })

  it('gives up after three attempts where others take the lock each time', async () => {
    const disk = await diskWithFolder('/data')
    let attempts = 0
    disk.openWrite = (path) => {
      disk.putFile('/data/zabra.lock', new TextEncoder().encode('99 f0 99-now\n'))
      if (++attempts > 9) throw new Error('it goes on for ever')
      return Promise.reject(new DiskError('there is one', 'EEXIST', path))
    }
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toMatchObject({ code: 'EEXIST' })
    expect(attempts).toBe(3)
  })

  describe('of two servers that start at once', () => {
    /** Starts a server, and another one to its end when the first one does something with the disk for the first time. */
    async function startTwo(
      disk: MemoryDisk,
      operation: 'remove' | 'write' | 'read' | 'rename',
    ): Promise<unknown[]> {
      let other: Promise<unknown> | undefined
      const between = async (): Promise<void> => {
        other ??= lockFolder(disk, '/data', owner(2, [1]), 'b2').catch((error: unknown) => error)
        await other
      }
      const before = async (call: string): Promise<void> => {
        if (call === operation) await between()
      }
      const first = Object.assign(Object.create(disk) as MemoryDisk, {
        remove: (path: string) => before('remove').then(() => disk.remove(path)),
        readFile: (path: string) => before('read').then(() => disk.readFile(path)),
        rename: (from: string, to: string) => before('rename').then(() => disk.rename(from, to)),
        async openWrite(path: string, options: { create: boolean; durable: boolean }) {
          const writer = await disk.openWrite(path, options)
          const write = (bytes: Uint8Array, position: number): Promise<void> =>
            before('write').then(() => writer.write(bytes, position))
          return { ...writer, write }
        },
      })
      const result = await lockFolder(first, '/data', owner(1, [2]), 'a1').catch((error: unknown) => error)
      await between()
      return [result, await other!]
    }

    it.each([
      ['before it writes its lock', 'write', undefined],
      ['before it reads the lock of an ended process', 'read', '99 f0 99-now\n'],
      ['before it takes the lock of an ended process away', 'rename', '99 f0 99-now\n'],
      ['before it removes the lock of an ended process', 'remove', '99 f0 99-now\n'],
    ] as const)('one gets the lock, where the other starts %s', async (_, operation, text) => {
      const disk = await diskWithFolder('/data')
      if (text !== undefined) disk.putFile('/data/zabra.lock', new TextEncoder().encode(text))
      const results = await startTwo(disk, operation)
      expect(results.filter((result) => typeof result === 'function')).toHaveLength(1)
      expect(results).toContainEqual(expect.objectContaining({ name: 'FolderLockedError' }))
      expect(disk.paths()).toEqual(['/data/zabra.lock'])
    })
  })

  it('leaves no lock behind that another server took away and put back while it was taken', async () => {
    const disk = await diskWithFolder('/data')
    const readFile = disk.readFile.bind(disk)
    let reads = 0
    disk.readFile = async (path) => {
      if (++reads === 1) await disk.rename(path, '/data/aside')
      else if (reads === 2) await disk.rename('/data/aside', path)
      return readFile(path)
    }
    const unlock = await lockFolder(disk, '/data', owner(1), 'a1')
    expect(disk.paths()).toEqual(['/data/zabra.lock'])
    await expect(lockFolder(disk, '/data', owner(1), 'b2')).rejects.toThrow('another server of this process')
    await unlock()
    expect(disk.paths()).toEqual([])
  })

  it('locks a folder once for a server that names it twice', async () => {
    const disk = await diskWithFolder('/data')
    const first = await lockFolder(disk, '/data', owner(1), 'a1')
    const second = await lockFolder(disk, '/data', owner(1), 'a1')
    await second()
    expect(await disk.exists('/data/zabra.lock')).toBe(true)
    await first()
    expect(await disk.exists('/data/zabra.lock')).toBe(false)
  })
})
