// Bundles the simulation with all sources of the server into one file, with one mistake planted on request. Nothing of
// this is part of a published package.
import { build } from 'esbuild'
import { mkdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const packages = resolve(here, '../../../packages')
const target = join(here, '../node_modules/.cache/zabra-sim')

/** Bundles `entry` and resolves to the file. `mutation`, or a variant, has a name and a list of replacements in source files; plugins may do more. */
export async function bundle(entry, mutation, plugins = []) {
  mkdirSync(target, { recursive: true })
  const outfile = join(
    target,
    `${entry.replace('.ts', '').replaceAll('/', '-')}${mutation ? `-${mutation.name}` : ''}.mjs`,
  )
  const planted = new Set()
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
    plugins: mutation ? [planting(mutation, planted), ...plugins] : plugins,
  })
  const missing = mutation?.changes.filter((change) => !planted.has(change)) ?? []
  if (missing.length > 0) {
    throw new Error(
      `Mutation ${mutation.name} does not fit the sources any more: ${missing.map(({ file }) => file).join(', ')}. Adapt it in apps/simulator/src/mutants`,
    )
  }
  return outfile
}

function planting({ changes }, planted) {
  return {
    name: 'planting',
    setup(builder) {
      builder.onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const file = relative(packages, path)
        const here = changes.filter((change) => change.file === file)
        if (here.length === 0) return undefined
        let contents = readFileSync(path, 'utf8')
        for (const change of here) {
          const parts = contents.split(change.find)
          if (parts.length !== 2) continue
          contents = parts.join(change.replace)
          planted.add(change)
        }
        return { contents, loader: 'ts' }
      })
    },
  }
}
