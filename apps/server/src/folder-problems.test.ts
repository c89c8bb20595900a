import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { folderProblems } from './folder-problems.ts'

const root = mkdtempSync(join(tmpdir(), 'zabra-folders-'))
const made = join(root, 'made')
mkdirSync(join(made, 'version-2'), { recursive: true })
writeFileSync(join(root, 'file'), '')

afterAll(() => rmSync(root, { recursive: true }))

/** Lets this user create files everywhere but in one folder. */
const allButIn =
  (folder: string) =>
  (path: string): void => {
    if (path === folder) throw Object.assign(new Error('denied'), { code: 'EACCES' })
  }

describe('folderProblems', () => {
  const settings = { dataDir: made, dataLogDir: made, autoCreateDataDir: true }

  test('finds nothing in folders that can be used, or created', () => {
    expect(folderProblems({ ...settings, dataLogDir: join(root, 'new/logs') })).toEqual([])
  })

  test.each([
    ['the folder', made, made],
    ['the folder of its files', join(made, 'version-2'), made],
    ['the parent of a folder that is to be created', root, join(root, 'new/data')],
  ])('names %s where this user may not write', (_, denied, dataDir) => {
    expect(folderProblems({ ...settings, dataDir, dataLogDir: dataDir }, allButIn(denied))).toEqual([
      {
        name: 'dataDir',
        text: `This user may not create files in ${denied} (EACCES). Run this as the user of the server, and let that user create files there`,
      },
    ])
  })

  test('names a file in the place of a folder', () => {
    expect(folderProblems({ ...settings, dataLogDir: join(root, 'file/logs') })).toEqual([
      {
        name: 'dataLogDir',
        text: `Expected a folder, got the file ${join(root, 'file')}. Name another folder`,
      },
    ])
  })

  test('names a folder that is absent and that the server may not create', () => {
    const dataDir = join(root, 'new')
    expect(folderProblems({ dataDir, dataLogDir: dataDir, autoCreateDataDir: false })).toEqual([
      {
        name: 'dataDir',
        text: `Expected the folder ${join(dataDir, 'version-2')}, got none. Create it, or set datadir.autocreate=true`,
      },
    ])
  })
})
