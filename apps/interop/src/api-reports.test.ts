import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { apiReport } from './api-report.ts'

const packages = resolve(import.meta.dirname, '../../../packages')

type Entry = { readonly types?: string; readonly node?: { readonly types: string } } | string

/** Returns the declaration file of each entry point of a package; the conditions of one entry point are two. */
function entriesOf(folder: string): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly exports: Readonly<Record<string, Entry>>
  }
  return new Map(
    Object.entries(exports).flatMap(([path, entry]) => {
      if (typeof entry === 'string') return []
      const file = entry.node?.types ?? entry.types!
      return [[join(name, path), join(folder, file)]]
    }),
  )
}

// After a change that is meant: pnpm --filter zabra-interop gen:api
it.each(['client', 'protocol', 'recipes', 'runtime', 'server', 'testing'])(
  'the public API of %s is the one in its report, which a change must update',
  async (name) => {
    const folder = join(packages, name)
    await expect(apiReport(folder, entriesOf(folder))).toMatchFileSnapshot(join(folder, `${name}.api.d.ts`))
  },
)
