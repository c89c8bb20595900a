// pnpm sim: bundles the simulation and runs it in a process of its own, so that source maps and limits apply.
import { spawn } from 'node:child_process'
import { bundle } from './build.mjs'
import { mutate } from './mutate.mjs'

const args = process.argv.slice(2).filter((argument) => argument !== '--')
const at = args.findIndex((argument) => argument === '--mutation' || argument === '--mutations')
if (at >= 0) {
  const number = (name, usual) => (args.includes(name) ? Number(args[args.indexOf(name) + 1]) : usual)
  const options = {
    seeds: number('--seeds', 300),
    processes: Math.max(1, number('--processes', 1)),
    write: args.includes('--docs'),
  }
  process.exitCode = (await mutate(args[at + 1] ?? '', options)) > 0 ? 1 : 0
} else {
  const file = await bundle('main.ts')
  const child = spawn(process.execPath, ['--enable-source-maps', file, ...args], { stdio: 'inherit' })
  child.on('exit', (code, signal) => (process.exitCode = signal ? 1 : (code ?? 1)))
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
}
