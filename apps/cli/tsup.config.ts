import { defineConfig } from 'tsup'

// One package: the modules of @zabra are bundled, so that a command loads a few files. A command's own module, and what only it
// needs, is a chunk that is loaded when the command runs.
export default defineConfig({
  entry: ['src/main.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  splitting: true,
  noExternal: [/^@zabra\//],
  esbuildOptions(options) {
    options.conditions = ['@zabra/source']
  },
  sourcemap: true,
  clean: true,
  dts: false,
})
