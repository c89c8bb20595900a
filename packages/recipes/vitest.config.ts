import { defineConfig } from 'vitest/config'

// Tests see the sources of sibling packages, so a change in one is seen in the other without a build.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    include: ['src/**/*.test.ts'],
    testTimeout: 60_000,
    // A bug on purpose, for the proof that a suite would find it.
    setupFiles: process.env['ZABRA_PLANT'] === undefined ? [] : ['src/testdata/plant.setup.ts'],
  },
})
