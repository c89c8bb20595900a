import { readFileSync } from 'node:fs'
import { resolve, dirname } from 'node:path'
import { expect, it } from 'vitest'
import { commandGroups } from './commands/index.ts'

/** Returns the packages that a source file loads before it runs: through static imports of values. */
function packagesOf(file: string, seen = new Set<string>()): Set<string> {
  const packages = new Set<string>()
  if (seen.has(file)) return packages
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  for (const [, isType, name = ''] of text.matchAll(
    /^(?:import|export) (type )?(?:[\w*\s{},]*? from )?'([^']+)'/gm,
  )) {
    if (isType !== undefined) continue
    if (!name.startsWith('.')) packages.add(name)
    else for (const one of packagesOf(resolve(dirname(file), name), seen)) packages.add(one)
  }
  return packages
}

const source = (name: string): string => resolve(import.meta.dirname, name)

it.each([
  'start.ts',
  ...['ls', 'tree', 'get', 'stat', 'create', 'set', 'delete', 'watch', 'status', 'lock', 'elect'].map(
    (name) => `commands/${name}.ts`,
  ),
])('%s loads no code of the server or the recipes', (name) => {
  const loaded = [...packagesOf(source(name))]
  expect(loaded).toContain('@zabra/protocol')
  expect(loaded.filter((one) => /^@zabra\/(?:server|recipes)/.test(one))).toEqual([])
})

it('every command has a name of its own', () => {
  const names = commandGroups.flatMap(([, entries]) => entries.flatMap((one) => one.names))
  expect(names).toEqual([...new Set(names)])
})
