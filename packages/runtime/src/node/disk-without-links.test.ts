// oxlint-disable no-restricted-imports -- the node disk is tested in a real folder
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type * as files from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { NodeDisk } from './disk.ts'

const folder = mkdtempSync(join(tmpdir(), 'zabra-links-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Called once a file is written. */
let onWritten = (_path: unknown): void => {}

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof files>()
  return {
    ...real,
    link: () => Promise.reject(Object.assign(new Error('no links here'), { code: 'EPERM' })),
    writeFile: async (...args: Parameters<typeof files.writeFile>) => {
      await real.writeFile(...args)
      onWritten(args[0])
    },
  }
})

it('creates a file once where there are no hard links, and does not replace one that follows it', async () => {
  const disk = new NodeDisk()
  const path = join(folder, 'lock')
  const mine = new TextEncoder().encode('mine')
  const other = join(folder, 'other')
  writeFileSync(other, 'theirs')
  // Another server takes the lock over.
  onWritten = (written) => {
    if (written === path) renameSync(other, path)
  }
  await disk.createFile(path, mine)
  expect(readFileSync(path, 'utf8')).toBe('theirs')
  await expect(disk.createFile(path, mine)).rejects.toMatchObject({ code: 'EEXIST' })
  expect(await disk.list(folder)).toEqual(['lock'])
})

it('renames a file to a new name where there are no hard links, and to none that is taken', async () => {
  const disk = new NodeDisk()
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  for (const text of ['first', 'second']) {
    writeFileSync(from, text)
    const renamed = disk.renameNew(from, to)
    if (text === 'first') await renamed
    else await expect(renamed).rejects.toMatchObject({ code: 'EEXIST', path: to })
    expect(readFileSync(to, 'utf8')).toBe('first')
  }
})
