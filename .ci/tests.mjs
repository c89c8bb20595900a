// Runs every package's tests, then says by name what was skipped and why, and ends with one line that counts them all.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const folders = ['packages', 'apps']
  .flatMap((top) => readdirSync(top).map((name) => join(top, name)))
  .filter((folder) => existsSync(join(folder, 'package.json')))
  .filter((folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).scripts?.test)
folders.push('.ci')

for (const folder of folders) rmSync(join(folder, 'test-results.json'), { force: true })

const run = (command, args) =>
  spawnSync(command, args, { stdio: 'inherit', shell: process.platform === 'win32' }).status ?? 1
const statuses = [
  run('pnpm', [
    'exec',
    'vitest',
    'run',
    '--root',
    '.ci',
    '--reporter=default',
    '--reporter=json',
    '--outputFile.json=test-results.json',
  ]),
  run('pnpm', ['exec', 'turbo', 'run', 'test', '--continue', '--concurrency=2', '--output-logs=full']),
]

const total = { passed: 0, failed: 0, skipped: 0 }
// Suites with tests that did not run; their names say why.
const skipped = new Map()
for (const folder of folders) {
  const file = join(folder, 'test-results.json')
  if (!existsSync(file)) {
    console.log(`${folder}: wrote no test results, which counts as a failure`)
    total.failed++
    continue
  }
  for (const suite of JSON.parse(readFileSync(file, 'utf8')).testResults) {
    if (suite.assertionResults.length === 0 && suite.status === 'failed') {
      console.log(`${suite.name}: did not load: ${suite.message}`)
      total.failed++
    }
    for (const test of suite.assertionResults) {
      if (test.status === 'passed') total.passed++
      else if (test.status === 'failed') total.failed++
      else {
        total.skipped++
        const suite = `${folder}: ${test.ancestorTitles[0] ?? test.title}`
        skipped.set(suite, (skipped.get(suite) ?? 0) + 1)
      }
    }
  }
}

if (skipped.size > 0) console.log('\nSkipped:')
for (const [suite, count] of skipped) console.log(`  ${suite}: ${count} ${count === 1 ? 'test' : 'tests'}`)
const bad = total.failed > 0 || statuses.some((status) => status !== 0)
if (bad && total.failed === 0) {
  console.log('A test run ended with an error outside its tests; see above.')
  total.failed = 1
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exitCode = bad ? 1 : 0
