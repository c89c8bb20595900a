// Mutation testing of one part of the server: StrykerJS changes operators, conditions, literals and blocks, one at a time, and the
// tests beside the changed files must fail. Prints the score of each file and every mutant that survives.
//
//   pnpm mutate core/quorum core/election          all files of two folders
//   pnpm mutate core/zab/commit-tracker.ts         one file, judged by all tests of its folder
//   pnpm mutate core/prepare with core/operations  judged by the tests of a second folder, too
//
// Sources are changed in place and restored at the end, so run it in a clean work tree.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Stryker } from '@stryker-mutator/core'

const folder = dirname(fileURLToPath(import.meta.url))
process.chdir(folder)
const given = process.argv.slice(2)
const end = given.includes('with') ? given.indexOf('with') : given.length
const targets = given.slice(0, end)
const helpers = given.slice(end + 1)
if (targets.length === 0) fail('Expected files or folders below packages/server/src, such as core/quorum.')
for (const target of [...targets, ...helpers])
  if (!existsSync(join('src', target))) fail(`src/${target} does not exist.`)
if (execFileSync('git', ['status', '--porcelain', 'src'], { encoding: 'utf8' }) !== '')
  fail('Sources are changed in place: commit the changes in packages/server/src first.')

const isFolder = (target) => statSync(join('src', target)).isDirectory()
const folders = new Set(targets.map((target) => (isFolder(target) ? target : dirname(target))))
process.env.ZABRA_MUTATE_TESTS = [...folders, ...helpers]
  .map((one) => (isFolder(one) ? `src/${one}/**/*.test.ts` : `src/${one}`))
  .join()
const scratch = join(tmpdir(), `zabra-mutate-${process.pid}`)

const results = await new Stryker({
  testRunner: 'vitest',
  plugins: ['@stryker-mutator/vitest-runner'],
  vitest: { configFile: 'vitest.mutate.config.ts', related: false },
  mutate: [
    ...targets.map((target) => (isFolder(target) ? `src/${target}/**/*.ts` : `src/${target}`)),
    '!src/**/*.test.ts',
    '!src/**/testing/**',
  ],
  // A message may change without a failing test.
  mutator: { excludedMutations: ['StringLiteral'] },
  inPlace: true,
  tsconfigFile: 'none',
  coverageAnalysis: 'perTest',
  ignoreStatic: true,
  concurrency: Number(process.env.ZABRA_MUTATE_PROCESSES ?? 1),
  tempDirName: scratch,
  reporters: [],
  logLevel: 'error',
}).runMutationTest()
rmSync(scratch, { recursive: true, force: true })

const files = new Map()
for (const one of results) {
  if (one.status === 'Ignored' || one.status === 'CompileError') continue
  const file = files.get(one.fileName) ?? { killed: 0, survived: [] }
  files.set(one.fileName, file)
  if (one.status === 'Killed' || one.status === 'Timeout') file.killed++
  else file.survived.push(one)
}
const rows = [...files].sort(([a], [b]) => (a < b ? -1 : 1))
for (const [name, { survived }] of rows) {
  const lines = readFileSync(name, 'utf8').split('\n')
  for (const { location, mutatorName, replacement, status } of survived) {
    const { line, column } = location.start
    const note = status === 'NoCoverage' ? 'no test' : 'survived'
    console.log(`${relative('src', name)}:${line}:${column} ${mutatorName}, ${note}`)
    console.log(`  - ${lines[line - 1].trim()}`)
    console.log(`  + ${replacement.split('\n')[0].trim()}`)
  }
}
const percent = (killed, all) => `${((100 * killed) / all).toFixed(1)} %`
let [killed, all] = [0, 0]
for (const [name, file] of rows) {
  const count = file.killed + file.survived.length
  killed += file.killed
  all += count
  console.log(`${relative('src', name)}: ${file.killed} of ${count} killed, ${percent(file.killed, count)}`)
}
console.log(`All: ${killed} of ${all} killed, ${percent(killed, all)}`)

function fail(message) {
  console.error(message)
  process.exit(2)
}
