import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** The tests that the table of attacks names, by file and title. */
const named = [
  ...readFileSync(join(root, 'SECURITY.md'), 'utf8').matchAll(/^\|.*\| `([^`]+\.test\.ts)`: (.+) \|$/gm),
].map(([, file, title]) => ({ file: file!, title: title! }))

it('names a test for each attack in SECURITY.md that exists', () => {
  const missing = named.filter(({ file, title }) => {
    const path = join(root, file)
    return !existsSync(path) || !readFileSync(path, 'utf8').includes(title)
  })
  expect(missing).toEqual([])
  expect(named.length).toBeGreaterThan(20)
})

it('leaves no attack in SECURITY.md without a test', () => {
  const section = readFileSync(join(root, 'SECURITY.md'), 'utf8').split('## Attacks, limits, tests')[1]!
  const rows = section.split('\n').filter((line) => /^\| (?!attack|---)/.test(line))
  expect(rows).toHaveLength(named.length)
})
