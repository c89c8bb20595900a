// Runs every package's tests, then says by name what was skipped and why, and ends with one line that counts them all.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'

const packageOf = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
const folders = ['packages', 'apps']
  .flatMap((top) => readdirSync(top).map((name) => join(top, name)))
  .filter((folder) => existsSync(join(folder, 'package.json')))
  .filter((folder) => packageOf(folder).scripts?.test)
/** The packages whose tests take longest, which start first: one that starts last would run beside an idle processor. */
const longest = ['packages/recipes', 'packages/server', 'apps/simulator', 'apps/cli'].map((folder) =>
  join(folder),
)
const others = [...longest, ...folders.filter((folder) => !longest.includes(folder))].filter(
  (folder) => folder !== join('apps/interop'),
)
folders.push('.ci')
others.push('.ci')

for (const folder of folders) rmSync(join(folder, 'test-results.json'), { force: true })

const run = (...args) =>
  new Promise((resolve) => {
    const child = spawn('pnpm', ['exec', ...args], { stdio: 'inherit', shell: process.platform === 'win32' })
    child.on('error', () => resolve(1))
    child.on('exit', (code) => resolve(code ?? 1))
  })
const reporters = ['--reporter=default', '--reporter=json', '--outputFile.json=test-results.json']
// The build is done: two runs would write the same files.
const test = (folder) =>
  folder === '.ci'
    ? run('vitest', 'run', '--root', '.ci', ...reporters)
    : run('turbo', 'run', 'test', '--only', '--output-logs=full', `--filter=${packageOf(folder).name}`)
const statuses = []
const lane = async (queue) => {
  for (let folder = queue.shift(); folder !== undefined; folder = queue.shift())
    statuses.push(await test(folder))
}
// The interop scenarios often wait for other programs: two other packages at a time have the processors beside them, and three behind them.
await Promise.all([lane([join('apps/interop')]).then(() => lane(others)), lane(others), lane(others)])

const total = { passed: 0, skipped: 0 }
// What failed, said once more at the end, where it is found however much the runs above printed.
const failures = []
// Suites with tests that did not run; their names say why.
const skipped = new Map()
for (const folder of folders) {
  const file = join(folder, 'test-results.json')
  if (!existsSync(file)) {
    failures.push(`${folder}: wrote no test results, which counts as a failure`)
    continue
  }
  for (const suite of JSON.parse(readFileSync(file, 'utf8')).testResults) {
    if (suite.assertionResults.length === 0 && suite.status === 'failed') {
      failures.push(`${suite.name}: did not load: ${suite.message}`)
    }
    for (const test of suite.assertionResults) {
      if (test.status === 'passed') total.passed++
      else if (test.status === 'failed') failures.push(summaryOf(suite.name, test))
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
if (failures.length === 0 && statuses.some((status) => status !== 0))
  failures.push('A test run ended with an error outside its tests; see above.')
if (failures.length > 0) console.log('\nFailed:')
for (const failure of failures) console.log(`  ${failure}`)
console.log(`${total.passed} passed, ${failures.length} failed, ${total.skipped} skipped`)
process.exitCode = failures.length > 0 ? 1 : 0

// A failed test in a few lines: where it stands, its name, and the beginning of each of its errors.
function summaryOf(file, { fullName, failureMessages }) {
  const errors = failureMessages.map((message) => message.split('\n').slice(0, 12).join('\n    '))
  return [`${relative(process.cwd(), file)}: ${fullName}`, ...errors].join('\n    ')
}
