import { defineConfig } from 'vitest/config'

// Tests see the sources of sibling packages, so a change in one is seen in the other without a build.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: { include: ['src/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
})
