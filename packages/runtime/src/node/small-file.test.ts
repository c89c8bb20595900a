import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { readSmallFile } from './small-file.ts'

it('reads files up to a length, and no more', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'zabra-small-file-'))
  const file = join(folder, 'file')
  for (const length of [0, 1, 1000]) {
    writeFileSync(file, Buffer.alloc(length, 7))
    expect(await readSmallFile(file, 1000)).toEqual(new Uint8Array(length).fill(7))
  }
  writeFileSync(file, Buffer.alloc(1001))
  await expect(readSmallFile(file, 1000)).rejects.toMatchObject({ code: 'EFBIG' })
  await expect(readSmallFile(folder, 1000)).rejects.toMatchObject({ code: 'EISDIR' })
  rmSync(folder, { recursive: true })
})

it.skipIf(process.platform !== 'linux')('reads what has no size', async () => {
  expect(new TextDecoder().decode(await readSmallFile('/proc/self/status', 100_000))).toContain('Name:')
  await expect(readSmallFile('/proc/self/status', 100)).rejects.toMatchObject({ code: 'EFBIG' })
})
