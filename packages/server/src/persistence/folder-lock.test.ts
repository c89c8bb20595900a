import { DiskError, MemoryDisk, SeededRandom, type DiskWriter } from '@zabra/runtime'
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

  it('leaves no lock where the disk refuses to write it, or to put it in the place of the last one', async () => {
    const disk = await diskWithFolder('/data')
    disk.injectFault = (call) => (call === 'write' ? { code: 'ENOSPC' } : undefined)
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toMatchObject({ code: 'ENOSPC' })
    expect(disk.paths()).toEqual([])
    disk.putFile('/data/zabra.lock', new TextEncoder().encode('99 f0 99-now\n'))
    disk.injectFault = (call) => (call === 'rename' ? { code: 'EIO' } : undefined)
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toMatchObject({ code: 'EIO' })
    expect(disk.paths()).toEqual(['/data/zabra.lock'])
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

  it('gives up after ten attempts where others lock the folder each time, and unlock it', async () => {
    const disk = await diskWithFolder('/data')
    let attempts = 0
    disk.createFile = (path) => {
      attempts++
      return Promise.reject(new DiskError('there is one', 'EEXIST', path))
    }
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toThrow('in use by other servers')
    expect(attempts).toBe(10)
  })

  it('takes over what servers have left that ended while they took the lock over, and leaves nothing of it', async () => {
    const disk = await diskWithFolder('/data')
    const put = (name: string, text: string): void =>
      disk.putFile(`/data/${name}`, new TextEncoder().encode(text))
    put('zabra.lock', '')
    put('zabra.lock.x', '98 e0 98-now\n')
    put('zabra.lock.e0', '99 f0 99-now\n')
    await lockFolder(disk, '/data', owner(1), 'a1')
    expect(disk.paths()).toEqual(['/data/zabra.lock'])
    expect(new TextDecoder().decode(await disk.readFile('/data/zabra.lock'))).toBe('1 a1 1-now\n')
  })

  it('knows its own lock and that of others, whatever their platform says of a process', async () => {
    const disk = await diskWithFolder('/data')
    const simulated = (pid: number): LockOwner => ({
      pid,
      processIdentity: (other) => `incarnation ${other}`,
    })
    await lockFolder(disk, '/data', simulated(-1), 'a1')
    await expect(lockFolder(disk, '/data', simulated(-2), 'b2')).rejects.toThrow('in use by process -1')
  })

  it('says what to do where files point to each other', async () => {
    const disk = await diskWithFolder('/data')
    for (const name of ['zabra.lock', 'zabra.lock.f0'])
      disk.putFile(`/data/${name}`, new TextEncoder().encode('99 f0 99-now\n'))
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toThrow('remove the files zabra.lock*')
  })

  describe('of several servers that start at once, one gets the lock and the others say so', () => {
    const leftBehind: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
      ['no lock', {}],
      ['the lock of an ended process', { 'zabra.lock': '99 f0 99-now\n' }],
      ['an empty lock', { 'zabra.lock': '' }],
      [
        'that of a server which ended while it took a lock over',
        { 'zabra.lock': '98 e0 98-now\n', 'zabra.lock.e0': '99 f0 99-now\n' },
      ],
    ]

    /** Starts servers, whose calls of the disk take effect in a random order. Returns what each got. */
    async function startAll(disk: MemoryDisk, servers: number, random: SeededRandom): Promise<unknown[]> {
      const waiting: (() => void)[] = []
      let left = servers
      const slow = new Proxy(disk, {
        get: (target, key) => {
          const value: unknown = Reflect.get(target, key)
          if (typeof value !== 'function') return value
          return async (...given: unknown[]) => {
            if (left > 0) await new Promise<void>((resolve) => waiting.push(resolve))
            const result: unknown = await (value as (...all: unknown[]) => unknown).apply(target, given)
            // A writer writes later.
            if (key !== 'openWrite') return result
            const writer = result as DiskWriter
            const write = async (bytes: Uint8Array, position: number): Promise<void> => {
              await new Promise<void>((resolve) => waiting.push(resolve))
              return writer.write(bytes, position)
            }
            return { ...writer, write }
          }
        },
      })
      const running = Array.from({ length: servers }, (_, at) => at + 1)
      const results = running.map((pid) =>
        lockFolder(slow, '/data', owner(pid, running), `t${pid}`)
          .catch((error: unknown) => error)
          .finally(() => left--),
      )
      while (left > 0) {
        await new Promise((resolve) => setImmediate(resolve))
        if (waiting.length > 0) waiting.splice(random.below(waiting.length), 1)[0]!()
      }
      return Promise.all(results)
    }

    it.each(leftBehind)('where there is %s', async (_, files) => {
      for (let seed = 0; seed < 150; seed++) {
        const disk = await diskWithFolder('/data')
        for (const [name, text] of Object.entries(files))
          disk.putFile(`/data/${name}`, new TextEncoder().encode(text))
        const results = await startAll(disk, 3, new SeededRandom(seed))
        const winner = results.findIndex((result) => typeof result === 'function')
        const others = results.filter((_result, at) => at !== winner)
        expect(others, `seed ${seed}`).toEqual([
          expect.objectContaining({ name: 'FolderLockedError' }),
          expect.objectContaining({ name: 'FolderLockedError' }),
        ])
        expect(disk.paths(), `seed ${seed}`).toEqual(['/data/zabra.lock'])
        const text = new TextDecoder().decode(await disk.readFile('/data/zabra.lock'))
        expect(text, `seed ${seed}`).toBe(`${winner + 1} t${winner + 1} ${winner + 1}-now\n`)
        await (results[winner] as () => Promise<void>)()
        expect(disk.paths()).toEqual([])
      }
    })
  })

  describe('of a folder whose version-2 is a link', () => {
    /** Returns a disk on which the version-2 of some folders are links. */
    const diskWithLinks = async (links: Record<string, string>): Promise<MemoryDisk> => {
      const disk = new MemoryDisk()
      for (const folder of ['/a/version-2', '/b/version-2', ...Object.values(links)])
        await disk.makeFolder(folder)
      return Object.assign(disk, { realPath: async (path: string) => links[path] ?? path })
    }

    it.each([
      ['of two servers to a folder of any name', { '/a/version-2': '/ssd/one', '/b/version-2': '/ssd/one' }],
      [
        'of two servers to the same version-2',
        { '/a/version-2': '/ssd/version-2', '/b/version-2': '/ssd/version-2' },
      ],
      ['to that of another server', { '/b/version-2': '/a/version-2' }],
    ])('is refused to a second server where it is one %s', async (_, links) => {
      const disk = await diskWithLinks(links)
      const unlock = await lockFolder(disk, '/a', owner(1), 'a1')
      await expect(lockFolder(disk, '/b', owner(2, [1]), 'b2')).rejects.toThrow('in use by process 1')
      await unlock()
      expect(disk.paths()).toEqual([])
      await lockFolder(disk, '/b', owner(2, [1]), 'b2')
      await expect(lockFolder(disk, '/a', owner(1, [2]), 'c3')).rejects.toThrow('in use by process 2')
    })

    it.each([
      ['one', 'two'],
      ['version-20', 'version-21'],
      ['a-version-2', 'b-version-2'],
    ])('is granted to servers whose links lead to folders beside each other: %s, %s', async (one, two) => {
      const disk = await diskWithLinks({ '/a/version-2': `/ssd/${one}`, '/b/version-2': `/ssd/${two}` })
      await lockFolder(disk, '/a', owner(1), 'a1')
      await lockFolder(disk, '/b', owner(2, [1]), 'b2')
    })

    it('is refused where another server has made what it leads to since it started', async () => {
      const disk = new MemoryDisk()
      const links: Record<string, string> = { '/b/version-2': '/a/version-2' }
      Object.assign(disk, { realPath: async (path: string) => links[path] ?? path })
      await lockFolder(disk, '/a', owner(1), 'a1')
      for (const folder of ['/a/version-2', '/b/version-2']) await disk.makeFolder(folder)
      await expect(lockFolder(disk, '/b', owner(2, [1]), 'b2')).rejects.toThrow('in use by process 1')
    })

    it('is not taken where the disk fails beside it', async () => {
      const disk = await diskWithLinks({ '/a/version-2': '/ssd/version-2' })
      disk.injectFault = (call, path) =>
        call === 'write' && path === '/ssd/zabra.lock' ? { code: 'EIO' } : undefined
      await expect(lockFolder(disk, '/a', owner(1), 'a1')).rejects.toThrow('EIO')
      expect(disk.paths()).toEqual([])
    })

    it('is that of version-2 where this user may not write beside it', async () => {
      const links = { '/a/version-2': '/ssd/version-2', '/b/version-2': '/ssd/version-2' }
      const disk = await diskWithLinks(links)
      disk.injectFault = (call, path) =>
        call === 'write' && path === '/ssd/zabra.lock' ? { code: 'EACCES' } : undefined
      await lockFolder(disk, '/a', owner(1), 'a1')
      expect(disk.paths()).toEqual(['/a/zabra.lock', '/ssd/version-2/zabra.lock'])
      await expect(lockFolder(disk, '/b', owner(2, [1]), 'b2')).rejects.toThrow('in use by process 1')
    })

    it('is granted once to a server that reaches the same folder by dataDir and dataLogDir', async () => {
      const disk = await diskWithLinks({ '/b/version-2': '/a/version-2' })
      const unlocks = [
        await lockFolder(disk, '/a', owner(1), 'a1'),
        await lockFolder(disk, '/b', owner(1), 'a1'),
      ]
      for (const unlock of unlocks.toReversed()) await unlock()
      expect(disk.paths()).toEqual([])
    })
  })

  it('locks a folder with a version-2 of its own where the disk knows no links', async () => {
    const disk = await diskWithFolder('/data/version-2')
    await lockFolder(disk, '/data', owner(1), 'a1')
    expect(disk.paths()).toEqual(['/data/zabra.lock'])
  })

  it('takes no lock that it cannot read, nor one whose predecessors it cannot remove', async () => {
    const disk = await diskWithFolder('/data')
    const left = { 'zabra.lock': '98 e0 98-now\n', 'zabra.lock.e0': '99 f0 99-now\n' }
    for (const [name, text] of Object.entries(left))
      disk.putFile(`/data/${name}`, new TextEncoder().encode(text))
    disk.injectFault = (call) => (call === 'read' ? { code: 'EIO' } : undefined)
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toThrow('EIO')
    expect(disk.paths()).toHaveLength(2)
    disk.injectFault = (call, path) =>
      call === 'remove' && path.endsWith('.e0') ? { code: 'EIO' } : undefined
    await expect(lockFolder(disk, '/data', owner(1), 'a1')).rejects.toThrow('EIO')
    expect(disk.paths()).toEqual(['/data/zabra.lock.e0'])
    disk.injectFault = undefined
    await lockFolder(disk, '/data', owner(1), 'b2')
    expect(disk.paths()).toContain('/data/zabra.lock')
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
