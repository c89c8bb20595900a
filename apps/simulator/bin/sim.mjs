// pnpm sim: bundles the simulator and runs it in a process of its own, so that source maps and signals work.
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { repository } from '@zabra/testkit/mutants'
import { bundle, nodeOptions } from './bundle.mjs'
import { huntMutants, mutantsOf } from './hunt-mutants.mjs'
import { variantOf } from './variants.mjs'

const args = process.argv.slice(2).filter((argument) => argument !== '--')
if (args.includes('--help') || args.includes('-h')) {
  // The examples of the documentation are the usage.
  const page = readFileSync(join(repository, 'docs/simulation.md'), 'utf8')
  console.log(/```sh\n(.*?)```/s.exec(page)[1].trim())
  process.exit()
}
const take = (name) => (args.includes(name) ? args.splice(args.indexOf(name), 2)[1] : undefined)
const [variantName, planted] = [take('--variant'), take('--plant')]
const variant = variantOf(variantName)
const recipes = args.indexOf('--recipes')
if (recipes >= 0 && (args[recipes + 1] ?? '--').startsWith('--')) args.splice(recipes + 1, 0, 'all')

/** Returns the mutants to hunt; undefined for a campaign. */
function wantedMutants() {
  const at = args.findIndex((argument) => ['--mutants', '--mutations', '--mutation'].includes(argument))
  if (at >= 0) return args[at + 1] ?? ''
  if (recipes < 0 || !args.includes('--plants')) return undefined
  const names = args[recipes + 1]
  return names === 'all' ? 'recipes' : names.replaceAll(/[^,]+/g, (name) => `recipe:${name}`)
}

/** Returns the commit of the sources, with `+` when they have changes that are not committed. */
function commit() {
  const git = (...words) => execFileSync('git', ['-C', repository, ...words], { encoding: 'utf8' }).trim()
  const isChanged = git('status', '--porcelain', '--', 'apps', 'packages') !== ''
  return `${git('rev-parse', '--short', 'HEAD')}${isChanged ? '+' : ''}`
}

/** Runs a bundle with the same signals, and exits as it does. It prints commands that replay its runs, for which it is bundled again. */
function runBundle(file, options) {
  const bundled = variantName === undefined ? planted && `--plant ${planted}` : `--variant ${variantName}`
  const env = bundled === undefined ? process.env : { ...process.env, ZABRA_SIM_BUNDLED: bundled }
  const child = spawn(process.execPath, [...nodeOptions, file, ...options], { stdio: 'inherit', env })
  child.on('exit', (code, signal) => (process.exitCode = signal ? 1 : (code ?? 1)))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
}

const mutants = wantedMutants()
if (args[0] === 'campaign') {
  if (variant !== undefined || planted !== undefined)
    throw new Error('Expected a campaign of the sources as they are, got --variant or --plant')
  const file = take('--file') ?? join(repository, 'lab/campaigns.json')
  runBundle(await bundle('campaign/main.ts'), [...args.slice(1), '--commit', commit(), '--file', file])
} else if (mutants === undefined) {
  const file = await bundle(
    recipes >= 0 ? 'recipes/main.ts' : 'main.ts',
    variant ?? (planted && (await mutantsOf(planted))[0]),
  )
  runBundle(file, args)
} else {
  const number = (name, usual) => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : usual)
  const options = {
    seeds: number('--seeds', 300),
    processes: Math.max(1, number('--processes', 1)),
    write: args.includes('--docs'),
  }
  process.exitCode = (await huntMutants(mutants, options)) > 0 ? 1 : 0
}
