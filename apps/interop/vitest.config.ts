import { basename } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * The files that take longest, which start first: one that starts last would run beside idle workers. Vitest starts large files first,
 * and how long a test waits for servers does not show in the size of its file.
 */
const LONGEST = [
  'ensemble-security',
  'ensemble-sync',
  'ensemble-mixed',
  'differential-roles',
  'foreign-checker',
  'ensemble-faults',
  'ensemble-observers',
  'client',
  'openapi',
  'disk',
  'recipes-locks',
  'tarballs',
  'tarball-tools',
  'tutorial',
  'ensemble-migration',
  'recipes-curator',
  'crash',
  'ensemble-sessions',
  'sasl',
  'differential',
  'rolling-restart',
]

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const index = LONGEST.indexOf(basename(moduleId, '.test.ts'))
      return index === -1 ? LONGEST.length : index
    }
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
  }
}

// Each file starts its own servers, some of them in Java, and often waits for them: three files at a time use four cores.
export default defineConfig({
  resolve: { conditions: ['@zabra/source'] },
  ssr: { resolve: { conditions: ['@zabra/source'] } },
  test: {
    globalSetup: ['src/harness/class-archives.ts'],
    setupFiles: ['src/harness/clean-up.ts'],
    include: ['src/**/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // A worker loads the sources once for all its files: to load them takes a second of the processor each time.
    isolate: false,
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
})
