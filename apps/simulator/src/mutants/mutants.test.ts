import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { mutations } from './index.ts'
import { variants } from '../../bin/variants.mjs'

const packages = resolve(import.meta.dirname, '../../../../packages')
const places = [...mutations, ...variants].flatMap(({ name, changes }) =>
  changes.map((change) => [name, change.file, change.find] as const),
)

it.each(places)('the mistake %s has its place in %s', (_name, file, find) => {
  const pieces = readFileSync(resolve(packages, file), 'utf8').split(find)
  expect(pieces.length, `places of ${find}`).toBe(2)
})

it('the documented table has a row for each mistake', () => {
  const text = readFileSync(resolve(packages, '../docs/simulation.md'), 'utf8')
  const table = text.slice(text.indexOf('<!-- begin mutations -->'), text.indexOf('<!-- end mutations -->'))
  const rows = [...table.matchAll(/^\| ([a-z][a-z0-9-]+) \|/gm)].map(([, name]) => name).slice(1)
  expect(new Set(rows), 'pnpm --filter zabra-simulator gen:docs').toEqual(
    new Set(mutations.map(({ name }) => name)),
  )
})
