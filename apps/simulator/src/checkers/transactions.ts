import type { Checker } from './checker.ts'

export const transactions: Checker = {
  name: 'transactions',
  proves:
    'Each transaction of the history fits the state before it: versions and counters rise by one, nothing is made twice or deleted when it is not there, a session that is over changes nothing, its end takes exactly the ephemeral znodes that it owns, and what servers delete by themselves is due.',
  check({ committed: { model }, maxClockErrorMs }) {
    return [...model.violations, ...(maxClockErrorMs === undefined ? [] : model.earlyDeletions)]
  },
}
