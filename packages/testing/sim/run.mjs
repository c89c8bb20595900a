// pnpm sim: bundles the simulation and runs it in a process of its own, so that source maps and limits apply.
import { spawn } from 'node:child_process'
import { bundle } from './build.mjs'

const file = await bundle('main.ts')
const child = spawn(process.execPath, ['--enable-source-maps', file, ...process.argv.slice(2)], {
  stdio: 'inherit',
})
child.on('exit', (code, signal) => process.exit(signal ? 1 : (code ?? 1)))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
