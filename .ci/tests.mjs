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
const skipped = []
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
        skipped.push(`${folder}: ${test.fullName}`)
      }
    }
  }
}

if (skipped.length > 0) console.log(`\nSkipped:\n${skipped.map((name) => `  ${name}`).join('\n')}`)
const bad = total.failed > 0 || statuses.some((status) => status !== 0)
if (bad && total.failed === 0) {
  console.log('A test run ended with an error outside its tests; see above.')
  total.failed = 1
}
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exitCode = bad ? 1 : 0
