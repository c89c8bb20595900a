import { acknowledgedWrites } from './acknowledged-writes.ts'
import { agreement } from './agreement.ts'
import { atMostOnce } from './at-most-once.ts'
import type { Checker } from './checker.ts'
import { convergence } from './convergence.ts'
import { epochs } from './epochs.ts'
import { freshness } from './freshness.ts'
import { readOnly } from './read-only.ts'
import { reads } from './reads.ts'
import { results } from './results.ts'
import { sequences } from './sequences.ts'
import { sessionOrder } from './session-order.ts'
import { sessions } from './sessions.ts'
import { syncs } from './syncs.ts'
import { transactions } from './transactions.ts'
import { watches } from './watches.ts'
import { writeOrder } from './write-order.ts'

/** All checkers. */
export const checkers: readonly Checker[] = [
  agreement,
  epochs,
  transactions,
  acknowledgedWrites,
  results,
  writeOrder,
  atMostOnce,
  sessionOrder,
  reads,
  readOnly,
  freshness,
  syncs,
  sequences,
  watches,
  sessions,
  convergence,
]

export type { Checker, EpochSample, Evidence } from './checker.ts'
