import { MemoryDisk } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { oneCallAtATime } from './one-call-disk.ts'

describe('a disk that makes one call at a time', () => {
  it('begins a call, also of an open file, when the one before has ended, and goes on after one that fails', async () => {
    const inner = new MemoryDisk()
    inner.putFile('/a', new Uint8Array([1, 2, 3]))
    const disk = oneCallAtATime(inner)
    const reader = await disk.openRead('/a')
    const writer = await disk.openWrite('/b', { create: true, durable: false })
    const begun: string[] = []
    inner.injectFault = (call, path) => {
      begun.push(`${call} ${path}`)
      return undefined
    }
    let release = (): void => {}
    inner.beforeWrite = () => {
      begun.push('write begins')
      return new Promise((resolve) => (release = resolve))
    }
    const written = writer.write(new Uint8Array([7]), 0)
    const missing = disk.openRead('/missing')
    const into = new Uint8Array(3)
    const read = reader.read(into, 0)
    await new Promise((resolve) => setImmediate(resolve))
    expect(begun).toEqual(['write begins'])
    release()
    await written
    await expect(missing).rejects.toMatchObject({ code: 'ENOENT' })
    expect(await read).toBe(3)
    expect(into).toEqual(new Uint8Array([1, 2, 3]))
    expect(begun).toEqual(['write begins', 'write /b', 'read /a'])
    expect(await disk.readFile('/b')).toEqual(new Uint8Array([7]))
  })
})
