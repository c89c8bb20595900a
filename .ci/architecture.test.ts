import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')
/** Folders to which the paths of ARCHITECTURE.md are relative. */
const bases = ['', 'packages/server/src', 'packages/client/src', 'packages/protocol/src/tables', 'packages']

it('ARCHITECTURE.md names files that exist', () => {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const paths = [...page.matchAll(/`([\w./-]+\.ts)`/g)].map(([, path]) => path!)
  expect(paths.length).toBeGreaterThan(25)
  expect(paths.filter((path) => !bases.some((base) => existsSync(join(root, base, path))))).toEqual([])
})
