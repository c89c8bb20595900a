import { type NetworkConditions, Prng } from '@zabra/testing'
import { drawParticipantFaults, drawParticipants, type ParticipantPlan } from '../participants/plan.ts'
import { CERTIFIED_USERS, isCertifiedUser, isSaslUser, SASL_USERS } from '../history/acl.ts'
import { MEMBERSHIP_CHANGES, type Fault } from './fault.ts'
import { drawLevels, type LevelsPlan } from './levels-plan.ts'
import type { VoterSet } from './membership.ts'
import { initialRoles, votersWith, type GroupsPlan } from './membership-text.ts'

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

interface Proofs {
  readonly logins: boolean
  readonly certificates: boolean
}

function drawClient(prng: Prng, largeTree: boolean, proofs: Proofs): ClientPlan {
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
const AUDITOR: ClientPlan = {
  timeoutMs: 6000,
  thinkMs: 40,
  burst: 2,
  watchRate: 0,
  user: '',
  weights: { get: 2, exists: 1, sync: 2 },
}

/** A client that accepts read-only servers and sends them requests of all kinds. */
const READ_ONLY_CLIENT: ClientPlan = {
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

/** How long servers lose their quorum: long enough to notice it and serve read-only clients for a while. */
const NO_QUORUM_MS = 7000

function drawQuorumLoss(prng: Prng, servers: number, loadMs: number): Fault[] {
  const at = prng.between(200, loadMs - NO_QUORUM_MS - 1000)
  const forMs = prng.between(5500, NO_QUORUM_MS)
  const minority = prng.shuffled(range(servers)).slice(0, Math.floor(servers / 2))
  const down = range(servers).filter((id) => !minority.includes(id))
  return prng.pickWeighted({ split: 1, down: 1 }) === 'split'
    ? [{ kind: 'split', group: minority, at, forMs }]
    : down.map((server) => ({ kind: 'kill', server, at: at + prng.between(0, 300), forMs }))
}

/** In some runs, draws a leader that learns late that it was replaced. */
function drawStaleLeaders(prng: Prng, servers: number, loadMs: number): Fault[] {
  if (servers === 1 || !prng.chance(0.3)) return []
  const at = prng.between(100, Math.max(200, loadMs - 5000))
  return [{ kind: 'staleLeader', server: 0, at, forMs: prng.between(3500, 6000) }]
}

/**
 * Draws strangers, most of them there from the beginning to the end. Those with the address of a server have that of one server,
 * which is no quorum of the first voters: nothing protects members from false claims of a quorum. The weight of groups is that of voters
 * alone, so that one server can be a quorum once others observe. The operator sees to later configurations.
 */
function drawStrangers(prng: Prng, { isQuorum }: VoterSet, servers: number, loadMs: number): Fault[] {
  const known = prng.pick(range(servers).filter((id) => !isQuorum((other) => other === id)))
  return Array.from({ length: prng.integer(2, 4) }, () => prng.pick(['elsewhere', 'server'] as const)).map(
    (from) => ({
      kind: 'stranger',
      server: from === 'server' ? known : prng.integer(1, servers),
      from,
      seed: prng.below(2 ** 31),
      at: prng.chance(0.5) ? 0 : prng.between(0, loadMs),
      forMs: prng.chance(0.6) ? loadMs : prng.between(100, loadMs),
    }),
  )
}

/**
 * Draws an ensemble of two voters and an observer. Only one of the voters ever leads without the other one, as the oracle says:
 * with two of them, the one that was alone last would have to be the next one too, which no oracle knows.
 */
function drawOracle(
  prng: Prng,
  loadMs: number,
): { survivor: number; ensemble: EnsemblePlan; faults: Fault[] } {
  const [survivor, other, observer] = prng.shuffled(range(3)) as [number, number, number]
  const faults: Fault[] = []
  for (let at = prng.between(100, 1000); at < loadMs; at += prng.between(4000, 9000))
    faults.push({ kind: 'alone', server: other, at, forMs: prng.pick([500, 1500, 3000]) })
  return { survivor, ensemble: { observers: [observer], outsiders: [], changes: [] }, faults }
}

/** Draws attempts to take over the sessions of clients whose users are such ones. */
function drawThieves(
  prng: Prng,
  clients: readonly ClientPlan[],
  isVictim: (user: string) => boolean,
  servers: number,
  loadMs: number,
): Fault[] {
  const victims = clients.flatMap(({ user }, client) => (isVictim(user) ? [client] : []))
  if (victims.length === 0) return []
  return Array.from({ length: prng.integer(4, 12) }, () => ({
    kind: 'thief',
    client: prng.pick(victims),
    server: prng.integer(1, servers),
    logsIn: prng.chance(0.5),
    at: prng.between(200, loadMs),
    forMs: 1000,
  }))
}

/** In some runs, draws servers that have accepted epochs in which no server led. */
function drawLaterEpochs(prng: Prng, servers: number, loadMs: number): Fault[] {
  if (servers < 3 || !prng.chance(0.2)) return []
  return Array.from({ length: prng.integer(1, 2) }, () => ({
    kind: 'laterEpoch',
    server: prng.integer(1, servers),
    by: prng.pick([1, 2, 5, 900]),
    at: prng.between(200, loadMs),
    forMs: prng.between(20, 3000),
  }))
}

/**
 * Draws disks on which syncs take seconds, each while the members change: a member stores a configuration before it applies what is
 * committed after it.
 */
function drawHangingDisks(prng: Prng, servers: number, loadMs: number): Fault[] {
  const faults: Fault[] = []
  for (let at = prng.between(200, 1500); at < loadMs; at += prng.between(3000, 6000)) {
    const [hanging, changed] = prng.shuffled(range(servers)) as [number, number]
    faults.push(
      { kind: 'slowDisk', server: hanging, syncMs: prng.pick([1500, 2500]), at, forMs: 2500 },
      { kind: prng.pick(['vote', 'observe']), server: changed, at: at + 50, forMs: 50 },
    )
  }
  return faults
}

/** Draws transfers of leadership to chosen servers, slow and full disks of these, and interruptions while leadership is handed over. */
function drawTransfers(prng: Prng, servers: number, loadMs: number): Fault[] {
  const faults: Fault[] = []
  const mean = prng.pick([400, 800, 1500])
  for (let at = prng.between(200, 1000); at < loadMs; at += 50 + prng.exponential(mean)) {
    const to = prng.integer(1, servers)
    if (prng.chance(0.6)) faults.push({ ...drawTransferInterruption(prng), at: at - 1 })
    const isSlow = prng.chance(0.05)
    if (isSlow)
      faults.push({
        kind: 'slowDisk',
        server: to,
        syncMs: prng.pick([50, 100, 300]),
        at: at - 1,
        forMs: 3000,
      })
    else if (prng.chance(0.05))
      faults.push({ kind: 'fullDisk', server: to, at: at + prng.pick([0.2, 0.5, 2]), forMs: 600 })
    faults.push({ kind: 'transfer', server: 0, to, at, forMs: prng.pick([0, 500, 1500]) })
  }
  return faults
}

const drawTransferInterruption = (prng: Prng): Omit<Extract<Fault, { kind: 'interruptTransfer' }>, 'at'> => ({
  kind: 'interruptTransfer',
  how: prng.pick(['reset', 'isolate', 'kill', 'powerCut']),
  target: prng.pickWeighted({ leader: 3, successor: 3, both: 1, all: 1 }),
  afterMs: prng.pick([0, 0, 0.3, 1, 3, 10, 30, 300]),
  forMs: prng.pick([20, 100, 600, 3000]),
})

/** Draws two members that are refused for seconds, one after the other: one of them does not lead. */
function drawRefusals(prng: Prng, servers: number, loadMs: number): Fault[] {
  return prng
    .shuffled(range(servers))
    .slice(0, 2)
    .map((server, index) => ({
      kind: 'refused',
      server,
      at: 100 + (index * loadMs) / 2,
      forMs: Math.min(5000, loadMs / 2),
    }))
}

interface EnsemblePlan {
  readonly observers: readonly number[]
  readonly outsiders: readonly number[]
  readonly changes: Fault[]
}

/** Returns the ensemble with at least one initial observer. */
function withObservers(prng: Prng, servers: number, drawn: EnsemblePlan): EnsemblePlan {
  const { observers, outsiders, changes } = drawn
  if (observers.length > 0) return drawn
  const some = prng.shuffled(range(servers)).slice(0, servers > 3 ? 2 : 1)
  return { observers: outsiders.length > 0 ? outsiders : some, outsiders: [], changes }
}

/** Draws initial roles and membership changes. */
function drawEnsemble(prng: Prng, servers: number, loadMs: number): EnsemblePlan {
  const ids = range(servers)
  const quiet = servers < 3 ? 0 : prng.pickWeighted({ none: 5, one: 2, two: servers > 3 ? 3 : 0 })
  const silent = prng.shuffled(ids).slice(0, quiet === 'one' ? 1 : quiet === 'two' ? 2 : 0)
  const observers = silent.filter(() => prng.chance(0.75))
  const outsiders = silent.filter((id) => !observers.includes(id))
  const changes: Fault[] = []
  if (servers < 3 || !prng.chance(0.4)) return { observers, outsiders, changes }
  const mean = prng.pick([loadMs / 10, loadMs / 4])
  for (let at = 100 + prng.exponential(mean); at < loadMs; at += 50 + prng.exponential(mean)) {
    const kind = prng.pickWeighted({ leave: 2, vote: 3, observe: 2, wipe: 1.5, renew: 1 })
    changes.push({
      kind,
      server: prng.chance(0.2) ? 0 : prng.pick(ids),
      at,
      forMs: prng.pick([50, 1000]),
    })
  }
  const outdated = prng.fork('outdated')
  const refused = changes
    .filter(() => outdated.chance(0.3))
    .map(({ at }): Fault => ({ kind: 'outdated', server: outdated.pick(ids), at: at + 1, forMs: 0 }))
  const interruptions = drawInterruptions(prng.fork('half'), changes)
  return { observers, outsiders, changes: [...changes, ...interruptions, ...refused] }
}

/** Layouts in which quorums differ from majorities: a majority may not be a quorum, or a minority may be one. */
export const GROUPS: Readonly<Record<number, readonly GroupsPlan[]>> = {
  3: [
    { members: [[1, 2, 3]], weights: [2, 1, 1] },
    { members: [[1, 2, 3]], weights: [1, 1, 0] },
    { members: [[1], [2], [3]], weights: [1, 1, 3] },
    { members: [[1, 2, 3]], weights: [3, 1, 1] },
  ],
  5: [
    { members: [[1, 2, 3], [4], [5]], weights: [1, 1, 1, 1, 1] },
    { members: [[1, 2], [3, 4], [5]], weights: [1, 1, 1, 1, 1] },
    { members: [[1, 2, 3, 4, 5]], weights: [3, 1, 1, 1, 1] },
    {
      members: [
        [1, 2, 3],
        [4, 5],
      ],
      weights: [1, 1, 1, 1, 0],
    },
  ],
}

function drawGroups(prng: Prng, servers: number): GroupsPlan | undefined {
  const layouts = GROUPS[servers]
  return layouts === undefined ? undefined : prng.pick(layouts)
}

/** Draws interruptions of leaders just before, or while, their reconfigurations are committed. */
function drawInterruptions(prng: Prng, changes: readonly Fault[]): Fault[] {
  return changes
    .filter(() => prng.chance(0.4))
    .map(({ at }) => ({
      kind: 'interruptReconfig',
      how: prng.pickWeighted({ reset: 3, isolate: 2, kill: 1, powerCut: 1 }),
      afterMs: prng.pick([0, 0, 1, 10]),
      at: at - 1,
      forMs: prng.pick([100, 600, 3000]),
    }))
}

function drawFaults(prng: Prng, servers: number, clients: number, loadMs: number): Fault[] {
  const faults: Fault[] = []
  const clocks = prng.chance(0.4)
  const mean = prng.pick([400, 1200, 3000])
  for (let at = 200 + prng.exponential(mean); at < loadMs; at += 50 + prng.exponential(mean)) {
    const fault = drawFault(prng, at, servers, clients, clocks)
    if (fault !== undefined) faults.push(fault)
  }
  return faults
}

function drawFault(
  prng: Prng,
  at: number,
  servers: number,
  clients: number,
  clocks: boolean,
): Fault | undefined {
  const forMs = prng.pick([20, 200, 1000, 3000, 6000]) * prng.between(0.5, 1.5)
  const server = servers > 1 && prng.chance(0.4) ? 0 : prng.integer(1, servers)
  const client = prng.below(clients)
  const both = { at, forMs }
  const kind = prng.pickWeighted({
    kill: 4,
    powerCut: 4,
    tornWrite: 4,
    stop: 1.5,
    handOver: servers > 1 ? 1.5 : 0,
    pause: 3,
    slowDisk: 2,
    fullDisk: 0.7,
    syncError: 0.7,
    killAll: 0.5,
    powerCutAll: 1,
    wallJump: clocks ? 1 : 0,
    drift: clocks ? 1 : 0,
    clientCut: 2,
    clientReset: 3,
    clientCrash: 1.5,
    clientPause: 1.5,
    ...(servers > 1
      ? {
          isolate: 4,
          dropInbound: 2,
          dropOutbound: 2,
          split: 3,
          bridge: servers > 3 ? 2 : 0,
          slowLink: 2,
          resetPeers: 3,
        }
      : {}),
  })
  switch (kind) {
    case 'killAll':
    case 'powerCutAll':
      return { ...both, kind }
    case 'tornWrite':
      return { ...both, kind, server, afterMs: prng.pick([0, 0.1, 0.5, 3]) }
    case 'wallJump':
      return { ...both, kind, server, by: prng.pick([-3_600_000, -2000, 2000, 3_600_000]) }
    case 'drift':
      return { ...both, kind, server, by: prng.between(0.9, 1.1) }
    case 'split':
      return {
        ...both,
        kind,
        group: prng.shuffled(range(servers)).slice(0, prng.integer(1, Math.floor(servers / 2))),
      }
    case 'slowLink':
      return { ...both, kind, server, other: prng.integer(1, servers), ms: prng.pick([20, 150, 600]) }
    case 'clientCut':
    case 'clientReset':
    case 'clientCrash':
    case 'clientPause':
      return { ...both, kind, client, server: prng.integer(1, servers) }
    case 'kill':
    case 'powerCut':
    case 'pause':
    case 'slowDisk':
    case 'fullDisk':
    case 'syncError':
    case 'isolate':
    case 'dropInbound':
    case 'dropOutbound':
    case 'bridge':
    case 'resetPeers':
    case 'stop':
      return { ...both, kind, server }
    case 'handOver':
      return { ...both, kind, server: 0 }
  }
}

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)
