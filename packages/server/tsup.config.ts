import { defineConfig } from 'tsup'

export default defineConfig({
  entry: ['src/index.ts', 'src/settings/index.ts', 'src/persistence/tools/index.ts', 'src/backup/index.ts'],
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  clean: true,
  dts: false,
})
