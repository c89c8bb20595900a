import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { missingChanges, repository } from '@zabra/testkit/mutants'
import { expect, it } from 'vitest'
import { variants } from '../../bin/variants.mjs'
import { mutants } from './index.ts'

it.each([...mutants, ...variants])('the mutant $name applies to the sources', (mutant) => {
  expect(missingChanges(mutant)).toEqual([])
})

it('the table of detected mutants has a row for each mutant', () => {
  const table = readFileSync(resolve(repository, 'lab/mutants.md'), 'utf8')
  const rows = [...table.matchAll(/^\| ([a-z][a-z0-9:-]+) \|/gm)].map(([, name]) => name).slice(1)
  expect(new Set(rows), 'pnpm --filter zabra-simulator gen:docs').toEqual(
    new Set(mutants.map(({ name }) => name)),
  )
})
