import { defineConfig } from 'vitest/config'

// Tests see the sources of sibling packages, so a change in one is seen in the other without a build.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    include: ['src/**/*.test.ts'],
    // Clocks are simulated: how long a test takes says how busy the machine is.
    testTimeout: 600_000,
    hookTimeout: 60_000,
    // A worker loads the sources once for all its files: to load them takes longer than most tests.
    isolate: false,
    // Tests start thousands of servers, whose buffers live for a moment. With room for them they die young, and are not copied.
    execArgv: ['--max-semi-space-size=32'],
  },
})
