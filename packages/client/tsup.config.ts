import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/core.ts', 'src/otel.ts', 'src/node/index.ts', 'src/web/index.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'neutral',
  sourcemap: true,
  clean: true,
  dts: false,
})
