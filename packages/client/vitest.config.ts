import { defineConfig } from 'vitest/config'

const EXAMPLES = 'src/readme.test.ts'

// Tests see the sources of sibling packages, so a change in one is seen in the other without a build.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      // A worker loads the sources once for all its files: to load them takes longer than most tests.
      {
        extends: true,
        test: { name: 'client', include: ['src/**/*.test.ts'], exclude: [EXAMPLES], isolate: false },
      },
      // Examples leave behind what they subscribe to.
      { extends: true, test: { name: 'examples', include: [EXAMPLES] } },
    ],
  },
})
