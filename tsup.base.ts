import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig, type Options } from 'tsup'
import { licensesOf } from './licenses.ts'

/** What the build replaces in the code: the commit, from ZABRA_COMMIT, which a release build sets. */
const define = { ZABRA_COMMIT: JSON.stringify(process.env['ZABRA_COMMIT'] ?? '') }

type Plugin = NonNullable<Options['esbuildPlugins']>[number]

/** Leaves imports of files of the same package in place, under the names that the files have once they are built. */
const separateModules: Plugin = {
  name: 'separate-modules',
  setup(build) {
    build.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, kind }) =>
      kind === 'entry-point' ? undefined : { path: path.replace(/\.ts$/, '.js'), external: true },
    )
  },
}

/**
 * Builds a library: one module for each source file, so that a bundler drops the files that an application does not use. One
 * bundled module would keep every statement that may have an effect.
 */
export const library = (platform: 'neutral' | 'node'): ReturnType<typeof defineConfig> =>
  defineConfig({
    entry: ['src/**/*.ts', '!src/**/*.test.ts', '!src/**/testing/**'],
    format: ['esm'],
    target: 'node20',
    platform,
    define,
    esbuildPlugins: [separateModules],
    sourcemap: false,
    clean: true,
    dts: false,
  })

/**
 * Builds a program with all packages that it needs. What an ordinary start loads is one file or a few: resolving and reading a hundred
 * files takes a sixth of the start of a server. Dynamic imports become separate chunks.
 */
export const program = (options: Pick<Options, 'minify' | 'sourcemap'>): ReturnType<typeof defineConfig> =>
  defineConfig({
    entry: ['src/main.ts'],
    format: ['esm'],
    target: 'node20',
    platform: 'node',
    clean: true,
    dts: false,
    noExternal: [/./],
    define,
    esbuildPlugins: [licenses],
    // Bundle workspace packages from their sources.
    esbuildOptions: (esbuild) => void (esbuild.conditions = ['@zabra/source']),
    // Bundled CommonJS packages load Node's modules with `require`.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    ...options,
  })

/** Collects the licenses of bundled packages in `dist/LICENSES.txt`, as the licenses demand. */
const licenses: Plugin = {
  name: 'licenses',
  setup(build) {
    build.initialOptions.metafile = true
    build.onEnd(({ metafile }) => {
      mkdirSync('dist', { recursive: true })
      writeFileSync(join('dist', 'LICENSES.txt'), licensesOf(Object.keys(metafile?.inputs ?? {})))
    })
  },
}
