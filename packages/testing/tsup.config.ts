import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/index.ts', 'src/child.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'neutral',
  sourcemap: true,
  clean: true,
  dts: false,
})
