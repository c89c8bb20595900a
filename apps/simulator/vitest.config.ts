import { defineConfig } from 'vitest/config'

// Resolves workspace packages to their sources, so that tests see changes without a build. A test is a computation of up to a minute on
// two processors that do nothing else.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    include: ['src/**/*.test.ts'],
    testTimeout: 600_000,
    hookTimeout: 60_000,
    // A worker loads the sources once for all its files.
    isolate: false,
  },
})
