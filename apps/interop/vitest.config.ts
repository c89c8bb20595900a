import { defineConfig } from 'vitest/config'

// Each file starts its own servers, some of them in Java, and often waits for them: three files at a time use four cores.
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
