import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vitest/config'
import { vitePlugin } from '@zabra/testkit/mutants'
import { mutants } from './src/testing/mutants.ts'

const source = (path: string): string => fileURLToPath(new URL(`src/${path}`, import.meta.url))

const folderOf = (id: string): string | undefined => /([\w-]+)\/README\.example\.js$/.exec(id)?.[1]

/**
 * Makes a module of the first example in the README of a folder: `example:queue` exports it as a function of the clients,
 * the data and the console that it uses.
 */
const examples: Plugin = {
  name: 'examples of READMEs',
  enforce: 'pre',
  resolveId(id, importer = '') {
    // The name ends in `.js`: the code runs as it is, on the oldest Node that runs the tests.
    if (id.startsWith('example:')) return source(`${id.slice(8)}/README.example.js`)
    if (folderOf(importer) === undefined) return undefined
    const own = /^@zabra\/recipes(?:\/(.*))?$/.exec(id)
    return own === null
      ? this.resolve(id, source('index.ts'), { skipSelf: true })
      : source(join(own[1] ?? '', 'index.ts'))
  },
  load(id) {
    const folder = folderOf(id)
    if (folder === undefined) return undefined
    const readme = readFileSync(source(`${folder}/README.md`), 'utf8')
    const lines = (/```js\n([\s\S]*?)```/.exec(readme)?.[1] ?? '').split('\n')
    const isImport = (line: string): boolean => line.startsWith('import ')
    // The clients of the test take the place of those of the example.
    const isClient = (line: string): boolean =>
      /^const \w+ = await connect\(|^await (client|other)\.close\(\)/.test(line)
    const body = lines.filter((line) => !isImport(line) && !isClient(line))
    const head = 'export const example = async ({ client, other, console }) => {'
    return [...lines.filter(isImport), head, ...body, '}'].join('\n')
  },
}

// A mutant, to prove that a random suite detects it.
const { ZABRA_MUTANT } = process.env
const mutant = ZABRA_MUTANT === undefined ? undefined : mutants[ZABRA_MUTANT]
if (ZABRA_MUTANT !== undefined && mutant === undefined)
  throw new Error(`Expected ZABRA_MUTANT to be one of ${Object.keys(mutants).join(', ')}`)
const planted: Plugin[] = mutant === undefined ? [] : [vitePlugin(mutant)]

// Tests see the sources of sibling packages, so a change in one is seen in the other without a build.
export default defineConfig({
  plugins: [examples, ...planted],
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    include: ['src/**/*.test.ts'],
    // Clocks are simulated: how long a test takes says how busy the machine is.
    testTimeout: 600_000,
    hookTimeout: 60_000,
    // A worker loads the sources once for all its files: to load them takes longer than most tests.
    isolate: false,
    // Tests start thousands of servers, whose buffers live for a moment. With room for them they die young, and are not copied.
    execArgv: ['--max-semi-space-size=32'],
  },
})
