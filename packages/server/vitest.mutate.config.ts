import base from './vitest.config.ts'

/** The tests of one area, which judge its mutants. */
export default { ...base, test: { ...base.test, include: process.env['ZABRA_MUTATE_TESTS']!.split(',') } }
