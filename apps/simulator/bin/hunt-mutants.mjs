// Plants one mistake after another and plays seeds until the simulation finds it.
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { bundle } from './bundle.mjs'

const docs = join(dirname(fileURLToPath(import.meta.url)), '../../../docs/simulation.md')

/** The mistakes with these names, with commas between them, or `all`. */
export async function mutationsOf(names) {
  const { mutations } = await import(pathToFileURL(await bundle('mutants/index.ts')).href)
  const chosen = names === 'all' ? mutations : mutations.filter(({ name }) => names.split(',').includes(name))
  if (chosen.length > 0) return chosen
  throw new RangeError(
    `Expected a mutation, got ${names}. There are ${mutations.map(({ name }) => name).join(', ')}`,
  )
}

/** Resolves to the number of mistakes that were not found. */
export async function mutate(names, { seeds, processes, write }) {
  const chosen = await mutationsOf(names)
  const rows = []
  const left = [...chosen.entries()]
  const work = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const [place, mutation] = next
      const row = { ...mutation, ...(await hunt(mutation, seeds).catch(notFound)) }
      rows[place] = row
      const how = row.found ? `found by ${row.checkers} with seed ${row.seed}` : 'NOT FOUND'
      console.log(`${mutation.name.padEnd(32)} ${how}, ${row.tried} seeds, ${row.seconds.toFixed(1)} s`)
    }
  }
  await Promise.all(Array.from({ length: processes }, work))
  const missed = rows.filter(({ found }) => !found).length
  if (write) writeTable(rows)
  console.log(`mutations: ${rows.length} planted, ${missed} not found`)
  return missed
}

function notFound(error) {
  console.log(String(error))
  return { found: false, tried: 0, seconds: 0 }
}

async function hunt(mutation, seeds) {
  const file = await bundle('mutants/hunt.ts', mutation)
  const begun = performance.now()
  const output = await run(file, [String(mutation.servers), String(seeds), mutation.with ?? ''])
  const result = JSON.parse(output.trim().split('\n').at(-1))
  return { ...result, seconds: (performance.now() - begun) / 1000 }
}

export function run(file, args) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.on('exit', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`The hunt ended with ${code}:\n${output}`)),
    )
  })
}

function writeTable(rows) {
  const lines = rows.map(
    ({ name, mistake, servers, found, checkers, tried, seconds }) =>
      `| ${name} | ${mistake} | ${servers} | ${found ? checkers : '**not found**'} | ${tried} | ${seconds.toFixed(1)} |`,
  )
  const table = [
    '| mutation | the mistake | servers | found by | seeds | seconds |',
    '| --- | --- | ---: | --- | ---: | ---: |',
    ...lines,
  ].join('\n')
  replaceBetween('mutations', table)
}

/** Puts a text between the marks of a name in the documentation. */
export function replaceBetween(name, text) {
  const file = docs
  const marks = [`<!-- begin ${name} -->`, `<!-- end ${name} -->`]
  const old = readFileSync(file, 'utf8')
  const [start, end] = marks.map((mark) => old.indexOf(mark))
  if (start < 0 || end < 0) throw new Error(`Expected the marks of ${name} in ${file}`)
  writeFileSync(file, `${old.slice(0, start + marks[0].length)}\n${text}\n${old.slice(end)}`)
}
