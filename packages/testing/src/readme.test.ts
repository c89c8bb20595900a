// oxlint-disable no-restricted-imports -- the examples of the README run as they are
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'zabra-testing-readme-'))
afterAll(() => rmSync(folder, { recursive: true }))

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const examples = [...readme.matchAll(/```js\n([\s\S]*?)```/g)].map(({ 1: code = '', index }) => ({
  name: readme
    .slice(0, index)
    .match(/(?<=^#+ ).*$/gm)!
    .at(-1)!,
  code,
  file: join(folder, `example-${index}.js`),
}))

const entries = {
  "'@zabra/client'": resolve(import.meta.dirname, '../../client/src/node/index.ts'),
  "'@zabra/recipes'": resolve(import.meta.dirname, '../../recipes/src/index.ts'),
  "'@zabra/testing'": resolve(import.meta.dirname, 'index.ts'),
}

function moduleOf(code: string): string {
  const lines = code.trimEnd().split('\n')
  let head = lines.filter((line) => line.startsWith('import ')).join('\n')
  for (const [name, entry] of Object.entries(entries)) head = head.replaceAll(name, JSON.stringify(entry))
  const body = lines.filter((line) => !line.startsWith('import ')).join('\n')
  return `${head}\nexport default async (console) => {\n${body}\n}\n`
}

describe('the README examples', () => {
  it.each(examples)('$name', async ({ code, file }) => {
    writeFileSync(file, moduleOf(code))
    const output: string[] = []
    const { default: run } = (await import(/* @vite-ignore */ pathToFileURL(file).href)) as {
      default: (console: { log(what: unknown): void }) => Promise<void>
    }
    await run({ log: (what) => void output.push(String(what)) })
    expect(output).toEqual([...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, text]) => text))
  })
})
