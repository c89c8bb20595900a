// Bundles a program of the simulator with the sources of all packages into one file, with a mutant on request.
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { esbuildPlugin } from '@zabra/testkit/mutants'
import { build } from 'esbuild'

const here = dirname(fileURLToPath(import.meta.url))
const target = join(here, '../node_modules/.cache/zabra-sim')

/**
 * Options of Node for bundles. Histories outlive many collections of the young generation, which a larger one makes fewer. Helper
 * threads of the collector take more processor time than they save: every core already runs a process with seeds of its own.
 */
export const nodeOptions = ['--enable-source-maps', '--max-semi-space-size=64', '--single-threaded-gc']

/** Bundles `entry`, a file below `src`, and resolves to the bundle. Rejects when the mutant does not apply. */
export async function bundle(entry, mutant) {
  mkdirSync(target, { recursive: true })
  const name = entry.replace('.ts', '').replaceAll('/', '-')
  const outfile = join(target, `${name}${mutant ? `-${mutant.name.replaceAll(':', '-')}` : ''}.mjs`)
  await build({
    entryPoints: [join(here, '../src', entry)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['@zabra/source'],
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'error',
    banner: {
      js: "import { createRequire as zabraRequire } from 'node:module'; const require = zabraRequire(import.meta.url)",
    },
    plugins: mutant ? [esbuildPlugin(mutant)] : [],
  })
  return outfile
}
