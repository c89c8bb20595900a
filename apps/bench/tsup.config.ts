import { defineConfig } from 'tsup'

export default defineConfig({
  entry: {
    main: 'src/main.ts',
    'busy-preload': 'src/busy-preload.ts',
    'heap-preload': 'src/heap-preload.ts',
    clients: 'src/clients/main.ts',
    'clients/worker': 'src/clients/worker.ts',
    recipes: 'src/recipes/main.ts',
    'recipes/worker': 'src/recipes/worker.ts',
  },
  format: ['esm'],
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  clean: true,
  dts: false,
})
