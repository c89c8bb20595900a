import type { Prng } from '@zabra/testing'
import { CERTIFIED_USERS, SASL_USERS } from '../history/acl.ts'

/** What a raw client may do. */
export type ClientOperation = keyof ReturnType<typeof drawWeights> | 'largeTree'

export interface ClientPlan {
  readonly timeoutMs: number
  /** Mean think time between two bursts, in milliseconds. */
  readonly thinkMs: number
  /** Maximum number of requests in a burst. */
  readonly burst: number
  /** Probability that a read sets a watch. */
  readonly watchRate: number
  /** The user that it authenticates as; empty for none. */
  readonly user: string
  readonly weights: Readonly<Partial<Record<ClientOperation, number>>>
  /** Whether read-only servers may serve it. */
  readonly readOnly?: boolean
}

interface Proofs {
  readonly logins: boolean
  readonly certificates: boolean
}

export function drawClient(prng: Prng, largeTree: boolean, proofs: Proofs): ClientPlan {
  return {
    timeoutMs: prng.pick([1500, 3000, 6000]),
    thinkMs: prng.pick([5, 15, 40, 120]),
    burst: prng.pick([1, 1, 4, 12]),
    watchRate: prng.pick([0, 0.3, 0.8]),
    user: drawUser(prng, proofs),
    weights: { ...drawWeights(prng), largeTree: largeTree ? 0.3 : 0 },
  }
}

function drawUser(prng: Prng, { logins, certificates }: Proofs): string {
  const usual =
    logins && prng.fork('login').chance(0.6)
      ? prng.fork('login user').pick(SASL_USERS)
      : prng.pick(['', 'ann', 'ben'])
  const certified = prng.fork('certificate')
  return certificates && certified.chance(0.6) ? certified.pick(CERTIFIED_USERS) : usual
}

/** Each run stresses something: some operations are left out, others are much more frequent. */
function drawWeights(prng: Prng) {
  const weight = (usual: number): number => (prng.chance(0.15) ? 0 : usual * prng.pick([0.5, 1, 1, 3]))
  return {
    set: 4,
    setIf: weight(3),
    create: weight(3),
    ephemeral: weight(2),
    sequential: weight(1),
    ephemeralSequential: weight(1.5),
    container: weight(0.5),
    delete: weight(3),
    multi: weight(1.5),
    failingMulti: weight(1),
    get: 4,
    exists: weight(2),
    children: weight(1.5),
    sync: weight(1),
    close: weight(0.05),
    move: weight(0.15),
    ttl: weight(0.4),
    secure: weight(2),
    getAcl: weight(0.6),
    ephemerals: weight(0.4),
    count: weight(0.4),
    addWatch: weight(0.6),
    removeWatches: weight(0.3),
    checkWatches: weight(0.4),
    multiRead: weight(1),
    whoAmI: weight(0.2),
    prove: weight(0.1),
    quota: weight(1.5),
    quotaUse: weight(0.6),
    largeMulti: weight(0.1),
    conditional: weight(2),
    manyEphemerals: weight(0.04),
  }
}

/**
 * A client that reads after syncs and never writes, so that a leader without a quorum could answer all its requests.
 */
export const AUDITOR: ClientPlan = {
  timeoutMs: 6000,
  thinkMs: 40,
  burst: 2,
  watchRate: 0,
  user: '',
  weights: { get: 2, exists: 1, sync: 2 },
}

/** A client that accepts read-only servers and sends them requests of all kinds. */
export const READ_ONLY_CLIENT: ClientPlan = {
  timeoutMs: 3000,
  thinkMs: 30,
  burst: 3,
  watchRate: 0.2,
  user: '',
  weights: {
    get: 6,
    exists: 2,
    children: 2,
    count: 0.5,
    multiRead: 1,
    set: 1,
    create: 0.5,
    delete: 0.5,
    ephemeral: 0.3,
    multi: 0.5,
    sync: 0.5,
    close: 0.1,
    move: 0.5,
  },
  readOnly: true,
}
