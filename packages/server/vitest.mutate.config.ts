import { mergeConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** The tests of one area, which judge its mutants. */
const tests = process.env['ZABRA_MUTATE_TESTS']!.split(',')

export default mergeConfig({ ...base, test: { ...base.test, include: tests } }, {})
