import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { defineConfig, type Options } from 'tsup'

type Plugin = NonNullable<Options['esbuildPlugins']>[number]

/** Who takes code of others along has to take their licenses along. */
const licenses: Plugin = {
  name: 'licenses',
  setup(build) {
    build.initialOptions.metafile = true
    build.onEnd(({ metafile }) => {
      const folders = new Set(Object.keys(metafile?.inputs ?? {}).flatMap(foreignPackage))
      const texts = [...folders].map(licenseOf).toSorted()
      mkdirSync('dist', { recursive: true })
      writeFileSync(join('dist', 'LICENSES.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`))
    })
  },
}

/** The folder of the package that a file belongs to, unless it is one of ours. */
function foreignPackage(file: string): string[] {
  if (!file.includes('node_modules/')) return []
  let folder = dirname(file)
  // A package may have others without a name inside, which say how its files are to be read.
  while (!existsSync(join(folder, 'package.json')) || !named(folder).name) {
    if (folder === dirname(folder)) throw new Error(`Expected a package around ${file}, found none`)
    folder = dirname(folder)
  }
  return [folder]
}

function licenseOf(folder: string): string {
  const { name, version, license } = named(folder)
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
  if (files.length === 0)
    throw new Error(`Expected a file with the license of ${name}, got none in ${folder}`)
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return [`${name} ${version} (${license})`, ...texts].join('\n\n') + '\n'
}

const named = (folder: string): { name?: string; version?: string; license?: string } =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object

// All that an ordinary start needs in one file: to find and read a hundred takes a sixth of its time. What is imported later
// lies beside it.
export default defineConfig({
  entry: ['src/main.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  clean: true,
  dts: false,
  noExternal: [/./],
  esbuildPlugins: [licenses],
  // Our packages are taken from their sources, to which a stack leads then.
  esbuildOptions: (options) => void (options.conditions = ['@zabra/source']),
  // Packages that are no ES modules ask for modules of the platform with `require`.
  banner: {
    js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
  },
})
