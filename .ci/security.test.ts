import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'

const root = resolve(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(root, file), 'utf8')
const page = read('docs/attacks.md')

/** The tests that the tables of attacks name, by file and title. */
const named = [...page.matchAll(/^\|.*\| `([^`]+\.test\.ts)`: (.+) \|$/gm)].map(([, file, title]) => ({
  file: file!,
  title: title!,
}))

it('names a test for each attack in docs/attacks.md that exists', () => {
  const missing = named.filter(
    ({ file, title }) => !existsSync(join(root, file)) || !read(file).includes(title),
  )
  expect(missing).toEqual([])
  expect(named.length).toBeGreaterThan(200)
})

it('leaves no attack in docs/attacks.md without a test', () => {
  const rows = page.split('\n').filter((line) => /^\| (?!attack|---)/.test(line))
  expect(rows).toHaveLength(named.length)
})

it('keeps SECURITY.md short enough to be read in a few minutes', () => {
  expect(read('SECURITY.md').split(/\s+/).length).toBeLessThan(900)
})
