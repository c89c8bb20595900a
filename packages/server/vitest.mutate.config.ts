import { mergeConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** The tests of one area, which judge its mutants. */
const tests = process.env['ZABRA_MUTATE_TESTS']!.split(',')

// Simulated worlds reach every line and take seconds for each mutant: the tests that name a property judge it.
const exclude = ['**/*.sim.test.ts', '**/node_modules/**']

// A test whose promise never settles fails soon here, while the runner would take a minute or start its process again.
const testTimeout = 4000

// A mutant would load all modules again for each test file.
const isolate = false

export default mergeConfig(
  { ...base, test: { ...base.test, include: tests, exclude, testTimeout, isolate } },
  {},
)
