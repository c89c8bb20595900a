import { defineConfig, type Options } from 'tsup'

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
    esbuildPlugins: [separateModules],
    sourcemap: false,
    clean: true,
    dts: false,
  })
