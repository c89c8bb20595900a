import type { Checker } from './checker.ts'

export const transactions: Checker = {
  name: 'transactions',
  proves:
    'Each transaction fits the state before it: versions and counters increase by one, only missing nodes are created and only existing ones deleted, an ended session changes nothing, its end deletes exactly its ephemeral znodes, and servers delete only expired or empty nodes.',
  check({ committed: { model }, maxClockErrorMs }) {
    return [...model.violations, ...(maxClockErrorMs === undefined ? [] : model.earlyDeletions)]
  },
}
