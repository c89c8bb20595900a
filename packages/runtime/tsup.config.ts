import { defineConfig } from 'tsup'

export default defineConfig({
  entry: [
    'src/index.ts',
    'src/node/index.ts',
    'src/node/dial.ts',
    'src/node/children.ts',
    'src/node/certificate-authority.ts',
    'src/ws/index.ts',
    'src/web/index.ts',
  ],
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  clean: true,
  dts: false,
})
