// Plants one mutant after another and runs seeds until the simulation detects it.
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { missingChanges, repository } from '@zabra/testkit/mutants'
import { bundle, nodeOptions } from './bundle.mjs'

const TABLE = join(repository, 'lab/mutants.md')

/** Resolves to the mutants with these names, separated by commas; `all` and `recipes` name many. */
export async function mutantsOf(names) {
  const { mutants } = await import(pathToFileURL(await bundle('mutants/index.ts')).href)
  const isChosen = ({ name }) =>
    names === 'all' || (names === 'recipes' ? name.startsWith('recipe:') : names.split(',').includes(name))
  const chosen = mutants.filter(isChosen)
  if (chosen.length > 0) return chosen
  throw new RangeError(
    `Expected a mutant, got ${names}. There are ${mutants.map(({ name }) => name).join(', ')}`,
  )
}

/** Hunts mutants and prints the results. Resolves to the number of mutants that were not detected or do not apply. */
export async function huntMutants(names, { seeds, processes, write }) {
  const chosen = await mutantsOf(names)
  const known = knownSeeds()
  const rows = []
  const left = [...chosen.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [index, mutant] = next
      const row = { ...mutant, ...(await hunt(mutant, seeds, known.get(mutant.name))) }
      rows[index] = row
      console.log(`${mutant.name.padEnd(34)} ${outcomeOf(row)}`)
    }
  }
  await Promise.all(Array.from({ length: processes }, work))
  const stale = rows.filter(({ missing }) => missing !== undefined)
  const missed = rows.filter(({ missing, by }) => missing === undefined && by === undefined)
  if (write) writeTable(rows)
  for (const { name, missing } of stale)
    for (const { file, find } of missing)
      console.log(`${name} does not apply: ${file} has no single ${JSON.stringify(find)}`)
  console.log(`mutants: ${rows.length} planted, ${missed.length} not found, ${stale.length} do not apply`)
  return missed.length + stale.length
}

function outcomeOf({ missing, by, tried, seconds, error }) {
  if (missing !== undefined) return 'DOES NOT APPLY'
  if (by === undefined) return `NOT FOUND, ${tried} seeds, ${seconds.toFixed(1)} s ${error ?? ''}`
  return `found by ${by} with seed ${tried}, ${seconds.toFixed(1)} s`
}

/** Returns the seeds that have detected mutants before, by the name of the mutant. */
function knownSeeds() {
  const rows = readFileSync(TABLE, 'utf8').matchAll(/^\| ([a-z][a-z0-9:-]+) \|.*\| (\d+) \| [\d.]+ \|$/gm)
  return new Map(Array.from(rows, ([, name, seed]) => [name, Number(seed)]))
}

async function hunt(mutant, seeds, known) {
  const missing = missingChanges(mutant)
  if (missing.length > 0) return { missing }
  const begun = performance.now()
  const seconds = () => (performance.now() - begun) / 1000
  try {
    const file = await bundle('mutants/hunt.ts', mutant)
    const output = await run(file, [JSON.stringify([mutant.hunt, seeds, known ?? null])])
    return { ...JSON.parse(output.trim().split('\n').at(-1)), seconds: seconds() }
  } catch (error) {
    return { tried: 0, seconds: seconds(), error }
  }
}

function run(file, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...nodeOptions, file, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.on('exit', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`The hunt ended with ${code}:\n${output}`)),
    )
  })
}

function writeTable(rows) {
  const lines = rows.map(
    ({ name, defect, hunt, by, tried, seconds }) =>
      `| ${name} | ${defect} | ${hunt.servers ?? ''} | ${by === undefined ? '**not found**' : by.replaceAll('|', '\\|').slice(0, 120)} | ${tried ?? ''} | ${seconds?.toFixed(1) ?? ''} |`,
  )
  const text = [
    '# Mutants and the checkers that detect them',
    '',
    'Written by `pnpm --filter zabra-simulator gen:docs`. A hunt tries the `seed` in this table first, then those from 1 on; the',
    'times are those of a machine under load.',
    '',
    '| mutant | defect | servers | detected by | seed | seconds |',
    '| --- | --- | ---: | --- | ---: | ---: |',
    ...lines,
    '',
  ].join('\n')
  writeFileSync(TABLE, text)
}
