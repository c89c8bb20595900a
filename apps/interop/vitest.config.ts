import { defineConfig } from 'vitest/config'

// Each file starts servers of its own, some of them Java's, and waits for them now and then, so three files at a time fill four
// cores.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    setupFiles: ['src/harness/clean-up.ts'],
    include: ['src/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    pool: 'forks',
    maxWorkers: 3,
  },
})
