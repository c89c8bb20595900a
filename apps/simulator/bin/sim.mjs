// pnpm sim: bundles the simulation and runs it in a process of its own, so that source maps and limits apply.
import { spawn } from 'node:child_process'
import { bundle } from './bundle.mjs'
import { mutate, mutationsOf } from './hunt-mutants.mjs'
import { plantAll } from './recipe-plants.mjs'
import { variantOf } from './variants.mjs'

const args = process.argv.slice(2).filter((argument) => argument !== '--')
const take = (name) => (args.includes(name) ? args.splice(args.indexOf(name), 2)[1] : undefined)
const [variant, planted] = [variantOf(take('--variant')), take('--plant')]
const recipes = args.indexOf('--recipes')
if (recipes >= 0 && (args[recipes + 1] ?? '--').startsWith('--')) args.splice(recipes + 1, 0, 'all')
const number = (name, usual) => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : usual)
const at = args.findIndex((argument) => argument === '--mutation' || argument === '--mutations')
if (at >= 0) {
  const options = {
    seeds: number('--seeds', 300),
    processes: Math.max(1, number('--processes', 1)),
    write: args.includes('--docs'),
  }
  process.exitCode = (await mutate(args[at + 1] ?? '', options)) > 0 ? 1 : 0
} else if (recipes >= 0 && args.includes('--plants')) {
  const options = {
    seeds: number('--seeds', 60),
    processes: Math.max(1, number('--processes', 1)),
    write: args.includes('--docs'),
  }
  process.exitCode = (await plantAll(args[recipes + 1], options)) > 0 ? 1 : 0
} else {
  const file = await bundle(
    recipes >= 0 ? 'recipes/main.ts' : 'main.ts',
    variant ?? (planted && (await mutationsOf(planted))[0]),
  )
  const child = spawn(process.execPath, ['--enable-source-maps', file, ...args], { stdio: 'inherit' })
  child.on('exit', (code, signal) => (process.exitCode = signal ? 1 : (code ?? 1)))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
}
