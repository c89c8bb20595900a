import { type NetworkConditions, Prng } from '@zabra/testing'
import { drawParticipantFaults, drawParticipants, type ParticipantPlan } from '../participants/plan.ts'
import { isCertifiedUser, isSaslUser } from '../history/acl.ts'
import { AUDITOR, drawClient, READ_ONLY_CLIENT, type ClientPlan } from './client-plan.ts'
import { drawEnsemble, drawGroups, drawOracle, withObservers } from './ensemble-plan.ts'
import { MEMBERSHIP_CHANGES, type Fault } from './fault.ts'
import {
  drawFaults,
  drawHangingDisks,
  drawLaterEpochs,
  drawQuorumLoss,
  drawRefusals,
  drawStaleLeaders,
  drawStrangers,
  drawThieves,
  drawTransfers,
  NO_QUORUM_MS,
  range,
} from './fault-plan.ts'
import { drawLevels, type LevelsPlan } from './levels-plan.ts'
import { initialRoles, votersWith, type GroupsPlan } from './membership-text.ts'

export interface DrawnSettings {
  readonly tickTimeMs: number
  readonly snapCount: number
  /** Snapshot threshold as a share of the number of znodes, where that is more than `snapCount`. */
  readonly snapTreeShare: number
  readonly preAllocSizeBytes: number
  readonly commitLogCount: number
  readonly globalOutstandingLimit: number
  /** Snapshot size from which learners are sent TRUNC instead of SNAP, in bytes. */
  readonly truncateFromBytes: number
  /** Share of a snapshot's size up to which learners are synced from the log; 0 for always, negative for never. */
  readonly snapshotSizeFactor: number
  /** Whether sessions are local until they create an ephemeral node. Ensembles only. */
  readonly localSessions: boolean
  /** The most bytes that leaders queue for a member that does not read them. */
  readonly maxUnsentBytes: number
}

/** An optional feature of an ensemble, drawn from the seed unless it is requested. */
export type Feature =
  | 'groups'
  | 'read-only'
  | 'observer-masters'
  | 'strangers'
  | 'large-tree'
  | 'oracle'
  | 'logins'
  | 'certificates'
  | 'refusals'
  | 'finalize'
  | 'log-folder'
  | 'hanging-disks'
  | 'transfers'

export const FEATURES: readonly Feature[] = [
  'groups',
  'read-only',
  'observer-masters',
  'strangers',
  'large-tree',
  'oracle',
  'logins',
  'certificates',
  'refusals',
  'finalize',
  'log-folder',
  'hanging-disks',
  'transfers',
]

/** Probability that a seed draws a feature. */
const FEATURE_CHANCE = 0.1
/** Probability of a large tree, which makes a run several times as long. */
const LARGE_TREE_CHANCE = 0.03

/** Share of the usual faults beside transfers, which only an ensemble with most of its voters begins. */
const BESIDE_TRANSFERS = 0.25

/** Everything that determines a run, together with the code. */
export interface Plan {
  readonly seed: number
  readonly servers: number
  /** Servers that start as observers. */
  readonly observers: readonly number[]
  /** Servers that start outside of the ensemble. */
  readonly nonMembers: readonly number[]
  /** Present for hierarchical quorums. */
  readonly groups?: GroupsPlan
  /** Whether servers without a quorum serve read-only clients. */
  readonly readOnly?: boolean
  /** Whether observers connect to followers. */
  readonly observerMasters?: boolean
  /** Whether the tree has 10,000 more znodes, which clients list, count and change. */
  readonly largeTree?: boolean
  /** The server of an ensemble with two voters whose oracle may let it lead alone. */
  readonly oracle?: number
  /** Whether servers keep their logs in another folder than the rest. */
  readonly separateLogs?: boolean
  /** Whether some clients log in by SASL, and thieves try to resume their sessions. */
  readonly logins?: boolean
  /** Whether some clients connect by TLS and show certificates, and thieves try to resume their sessions without them. */
  readonly certificates?: boolean
  /** Present where servers run releases of different feature levels, which are finalized. */
  readonly levels?: LevelsPlan
  /** How long clients and faults are active, in milliseconds of world time. */
  readonly loadMs: number
  readonly clients: readonly ClientPlan[]
  /** Clients of `@zabra/client`. In faults their indexes follow those of the raw clients. */
  readonly participants: readonly ParticipantPlan[]
  readonly faults: readonly Fault[]
  readonly network: NetworkConditions
  readonly disk: {
    readonly syncMs: number
    readonly stallRate: number
    readonly stallMs: number
    readonly reordersSectors: boolean
  }
  readonly settings: DrawnSettings
}

export interface PlanOptions {
  readonly servers?: number
  readonly minutes?: number
  /** Whether power cuts reorder and corrupt unsynced sectors; drawn from the seed by default. */
  readonly reordersSectors?: boolean
  /** Features of the ensemble whatever the seed draws. */
  readonly features?: readonly Feature[]
}

/** Draws a plan from a seed. */
export function drawPlan(seed: number, options: PlanOptions = {}): Plan {
  const prng = new Prng(seed).fork('plan')
  const servers = options.servers ?? prng.pick([1, 3, 3, 5])
  const has = (feature: Feature): boolean =>
    options.features?.includes(feature) === true ||
    prng.fork(feature).chance(feature === 'large-tree' ? LARGE_TREE_CHANCE : FEATURE_CHANCE)
  const readOnly = servers > 1 && has('read-only')
  const wishedMs = (options.minutes ?? 1 / 6) * 60_000
  const loadMs = readOnly ? Math.max(wishedMs, NO_QUORUM_MS + 2000) : wishedMs
  const largeTree = has('large-tree')
  const logins = has('logins')
  const certificates = has('certificates')
  const clients = Array.from({ length: prng.integer(2, 6) }, () =>
    drawClient(prng.fork(`client ${prng.below(1e9)}`), largeTree, { logins, certificates }),
  )
  const deposals = drawStaleLeaders(prng.fork('deposals'), servers, loadMs)
  const harsh = prng.chance(0.3)
  const observerMasters = servers >= 3 && has('observer-masters')
  const groups = servers >= 3 && has('groups') ? drawGroups(prng.fork('layout'), servers) : undefined
  const oracle =
    servers === 3 && groups === undefined && has('oracle') ? drawOracle(prng.fork('two'), loadMs) : undefined
  const drawn = oracle?.ensemble ?? drawEnsemble(prng.fork('ensemble'), servers, loadMs)
  const ensemble = observerMasters ? withObservers(prng.fork('observers'), servers, drawn) : drawn
  const { observers, outsiders } = ensemble
  const voters = votersWith(initialRoles({ servers, observers, nonMembers: outsiders }), groups)
  const auditors = deposals.length > 0 ? [AUDITOR, AUDITOR, AUDITOR] : []
  const all = [
    ...clients,
    ...auditors,
    ...(readOnly ? [READ_ONLY_CLIENT, READ_ONLY_CLIENT, READ_ONLY_CLIENT] : []),
  ]
  const participants = drawParticipants(prng.fork('participants'))
  const place = { from: all.length, count: participants.length, servers, loadMs }
  const others = drawFaults(prng.fork('faults'), servers, clients.length, loadMs)
  const transfers = servers >= 3 && has('transfers')
  const thinned = prng.fork('beside transfers')
  const faults = [
    ...(transfers ? others.filter(() => thinned.chance(BESIDE_TRANSFERS)) : others),
    ...deposals,
    ...ensemble.changes,
    ...(readOnly ? drawQuorumLoss(prng.fork('lonely'), servers, loadMs) : []),
    ...drawParticipantFaults(prng.fork('participant faults'), place),
    ...(servers > 1 && has('strangers') ? drawStrangers(prng.fork('strange'), voters, servers, loadMs) : []),
    ...drawLaterEpochs(prng.fork('later epochs'), servers, loadMs),
    ...(servers > 1 && has('refusals') ? drawRefusals(prng.fork('refused'), servers, loadMs) : []),
    ...(oracle?.faults ?? []),
    ...(servers >= 3 && oracle === undefined && has('hanging-disks')
      ? drawHangingDisks(prng.fork('hanging'), servers, loadMs)
      : []),
    ...(transfers ? drawTransfers(prng.fork('chosen successors'), servers, loadMs) : []),
  ]
  const levels = has('finalize')
    ? drawLevels(prng.fork('levels'), range(servers), outsiders, loadMs)
    : undefined
  const notesUsers =
    outsiders.length === 0 && !faults.some(({ kind }) => kind === 'fullDisk' || MEMBERSHIP_CHANGES.has(kind))
  return {
    seed,
    servers,
    observers,
    nonMembers: outsiders,
    ...(groups === undefined ? {} : { groups }),
    ...(readOnly ? { readOnly } : {}),
    ...(observerMasters ? { observerMasters } : {}),
    ...(largeTree ? { largeTree } : {}),
    ...(oracle === undefined ? {} : { oracle: oracle.survivor }),
    ...(has('log-folder') ? { separateLogs: true } : {}),
    ...(logins ? { logins } : {}),
    ...(certificates ? { certificates } : {}),
    ...(levels === undefined ? {} : { levels: levels.levels }),
    loadMs,
    clients: all,
    participants,
    faults: [
      ...faults,
      // Where the user of a session cannot be stored, nothing protects the session.
      ...(logins && notesUsers
        ? drawThieves(prng.fork('thieves'), clients, isSaslUser, servers, loadMs)
        : []),
      ...(certificates
        ? drawThieves(prng.fork('thieves of certificates'), clients, isCertifiedUser, servers, loadMs)
        : []),
      ...(levels?.faults ?? []),
    ],
    network: {
      delayMs: prng.pick([0.05, 0.2, 2]),
      jitterMs: prng.pick([0.1, 0.5, 3]),
      tailRate: harsh ? 0.05 : 0.005,
      tailMs: harsh ? 80 : 15,
      splitRate: prng.pick([0, 0.05, 0.5]),
      breakOnHealRate: prng.pick([0.1, 0.5, 0.9]),
    },
    disk: {
      syncMs: prng.pick([0.2, 1, 6]),
      stallRate: harsh ? 0.02 : 0.001,
      stallMs: 100,
      reordersSectors: options.reordersSectors ?? prng.fork('wild').chance(0.35),
    },
    settings: {
      tickTimeMs: 500,
      snapCount: prng.pick([30, 80, 400, 100_000]),
      snapTreeShare: prng.fork('share of the tree').pick([0, 0, 0.25, 1]),
      preAllocSizeBytes: prng.pick([0, 4096, 65_536]),
      commitLogCount: prng.pick([20, 100, 500]),
      globalOutstandingLimit: prng.pick([5, 1000]),
      truncateFromBytes: prng.pick([0, 0, 1 << 20]),
      snapshotSizeFactor: prng.pick([0.33, 0, -1]),
      localSessions: servers > 1 && prng.fork('local sessions').chance(0.25),
      maxUnsentBytes: largeTree ? 8 << 20 : prng.fork('unsent').pick([32 << 10, 64 << 10, 128 << 20]),
    },
  }
}
