// A soak of three server processes: rolling restarts, killed leaders, full and slow disks, backups, many znodes.
//
//   pnpm --filter zabra-interop soak --minutes 120 --znodes 1000000 --calm 15
//
// Prints memory, holds of the event loop and failed calls; fails on a violation. The servers are the built ones: run `pnpm build` first.
import { spawn } from 'node:child_process'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  args: process.argv.slice(2).filter((argument) => argument !== '--'),
  options: {
    minutes: { type: 'string', default: '120' },
    znodes: { type: 'string', default: '1000000' },
    // Seconds without a disturbance between two.
    calm: { type: 'string', default: '15' },
  },
})
for (const [name, value] of Object.entries(values))
  if (!(Number(value) > 0)) {
    console.error(`Expected a positive number for --${name}, got ${value}`)
    process.exit(2)
  }
// At the end the trees of all members are compared in one process: about a kilobyte a znode.
const heap = `${process.env.NODE_OPTIONS ?? ''} --max-old-space-size=${2048 + Math.ceil(Number(values.znodes) / 250)}`
const env = {
  ...process.env,
  NODE_OPTIONS: heap,
  ZABRA_SOAK_MINUTES: values.minutes,
  ZABRA_SOAK_ZNODES: values.znodes,
  ZABRA_SOAK_CALM: values.calm,
}
const child = spawn('pnpm', ['exec', 'vitest', 'run', 'src/soak.test.ts'], { stdio: 'inherit', env })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', (code) => (process.exitCode = code ?? 1))
