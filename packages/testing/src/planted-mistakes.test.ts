import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { mutations } from '../sim/mutations/index.ts'
import { variants } from '../sim/variants.mjs'

const packages = resolve(import.meta.dirname, '../..')
const places = [...mutations, ...variants].flatMap(({ name, changes }) =>
  changes.map((change) => [name, change.file, change.find] as const),
)

it.each(places)('the mistake %s has its place in %s', (_name, file, find) => {
  const pieces = readFileSync(resolve(packages, file), 'utf8').split(find)
  expect(pieces.length, `places of ${find}`).toBe(2)
})
