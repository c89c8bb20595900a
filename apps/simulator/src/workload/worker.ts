import { credentialsOf, isCertifiedUser, isSaslUser } from '../history/acl.ts'
import { QUOTA_PATH, QUOTA_STATS } from '../history/quota.ts'
import type { History, Operation, MultiPart, ReadPart, Request } from '../history/records.ts'
import type { ClientPlan, ClientOperation } from '../simulation/client-plan.ts'
import type { Host, Prng, ServerEndpoint } from '@zabra/testing'
import { drawLargeTreeRequest } from './large-tree.ts'
import { SessionClient, type SessionClientOptions } from './session-client.ts'

/** Nodes created before clients start. */
export const BASE_PATHS: readonly string[] = [
  '/w',
  '/w/r',
  '/w/t',
  '/w/s',
  '/w/e',
  '/w/a',
  '/w/probe',
  '/w/q',
  '/w/n',
  ...registers(6),
]

/** Paths on which persistent watches are recursive; on others they are not. */
const RECURSIVE: ReadonlySet<string> = new Set(['/w/t', '/w/r'])

/** Operations that a server without a quorum can answer. */
const READS: ReadonlySet<ClientOperation> = new Set([
  'get',
  'exists',
  'children',
  'sync',
  'move',
  'getAcl',
  'ephemerals',
  'count',
  'addWatch',
  'removeWatches',
  'checkWatches',
  'multiRead',
  'whoAmI',
  'prove',
  'quotaUse',
])

/** Returns how a client proves to be a user. */
function proofOf(user: string): Pick<SessionClientOptions, 'login' | 'certificate' | 'credentials'> {
  if (user === '') return {}
  if (isSaslUser(user)) return { login: user }
  return isCertifiedUser(user) ? { certificate: user } : { credentials: credentialsOf(user) }
}

function registers(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `/w/r/${index}`)
}

export interface WorkerOptions {
  readonly host: Host
  readonly plan: ClientPlan
  readonly prng: Prng
  readonly history: History
  readonly servers: () => readonly ServerEndpoint[]
  readonly nextConnection: () => number
}

/** A client that sends bursts of requests with think times between them, until it is stopped. */
export class Worker {
  readonly host: Host
  client!: SessionClient
  /** Number of operations of each kind. */
  readonly operationCounts: Partial<Record<ClientOperation, number>> = {}
  readonly #options: WorkerOptions
  readonly #versions = new Map<string, number>()
  #incarnations = 0
  #values = 0
  #working = false

  constructor(options: WorkerOptions) {
    this.#options = options
    this.host = options.host
  }

  /** Whether all its operations can be answered without a quorum. */
  get isReadOnly(): boolean {
    return Object.entries(this.#options.plan.weights).every(
      ([deed, weight]) => weight === 0 || READS.has(deed as ClientOperation),
    )
  }

  /** Whether read-only servers may serve it. */
  get acceptsReadOnlyServers(): boolean {
    return this.#options.plan.readOnly === true
  }

  /** Starts the process with a new session, also after a crash. */
  start(): void {
    const incarnation = this.host.start()
    const { history, servers, plan, nextConnection, prng } = this.#options
    const name = `${this.host.name}.${this.#incarnations++}`
    this.client = new SessionClient({
      name,
      incarnation,
      prng: prng.fork(`connections ${name}`),
      history,
      servers,
      timeoutMs: plan.timeoutMs,
      ...proofOf(plan.user),
      nextConnection,
      readOnly: plan.readOnly === true,
    })
    this.client.onEnd = (operation) => this.#recordVersion(operation)
    this.client.start()
    this.#working = true
    this.#think()
  }

  stop(): void {
    this.#working = false
  }

  #think(): void {
    const { prng, plan } = this.#options
    const incarnation = this.host.current!
    incarnation.platform.clock.after(prng.exponential(plan.thinkMs), 'think', () => {
      if (!this.#working) return
      if (this.client.isAttached && this.client.inFlight < 4 * plan.burst) {
        const count = prng.integer(1, plan.burst)
        for (let i = 0; i < count; i++) this.#act(prng.pickWeighted(plan.weights))
      }
      this.#think()
    })
  }

  #act(deed: ClientOperation): void {
    this.operationCounts[deed] = (this.operationCounts[deed] ?? 0) + 1
    if (deed === 'move') return this.client.reconnect()
    if (deed === 'prove') return this.client.authenticate()
    this.client.send(this.#request(deed))
  }

  #request(deed: Exclude<ClientOperation, 'move' | 'prove'>): Request {
    const { prng, plan } = this.#options
    const watch = prng.chance(plan.watchRate)
    switch (deed) {
      case 'set':
        return { op: 'set', path: this.#register(), data: this.#value(), version: -1 }
      case 'setIf': {
        const path = this.#register()
        return { op: 'set', path, data: this.#value(), version: this.#versions.get(path) ?? 0 }
      }
      case 'conditional':
        return this.#conditional()
      case 'manyEphemerals':
        return { op: 'multi', parts: this.#manyEphemerals() }
      case 'create':
        return { op: 'create', path: this.#leaf(), data: this.#value(), mode: 'persistent' }
      case 'ephemeral':
        return { op: 'create', path: `/w/e/${prng.below(5)}`, data: this.#value(), mode: 'ephemeral' }
      case 'sequential':
        return {
          op: 'create',
          path: `/w/s/${prng.pick(['a', 'b'])}`,
          data: this.#value(),
          mode: 'sequential',
        }
      case 'ephemeralSequential':
        return { op: 'create', path: '/w/s/e', data: this.#value(), mode: 'ephemeralSequential' }
      case 'container':
        return { op: 'create', path: `/w/t/c${prng.below(3)}`, data: '', mode: 'container' }
      case 'delete':
        return {
          op: 'delete',
          path: this.#pathToDelete(),
          version: -1,
        }
      case 'multi':
        return { op: 'multi', parts: this.#parts() }
      case 'failingMulti':
        return {
          op: 'multi',
          parts: [...this.#parts(), { op: 'check', path: this.#register(), version: 1_000_000 }],
        }
      case 'largeMulti':
        return { op: 'multi', parts: this.#largeMulti() }
      case 'get':
      case 'exists':
        return { op: deed, path: this.#anyPath(), watch }
      case 'children':
        return { op: 'children', path: prng.pick(['/w/t', '/w/s', '/w/e']), watch }
      case 'ttl':
        return { op: 'create', path: `/w/t/l${prng.below(3)}`, data: '', mode: 'ttl' }
      case 'secure':
        return this.#aclRequest()
      case 'getAcl':
        return { op: 'getAcl', path: prng.pick([this.#aclPath(), this.#anyPath()]) }
      case 'ephemerals':
        return { op: 'ephemerals', path: prng.pick(['/w', '/w/e', '/w/s', '/w/n']) }
      case 'count':
        return { op: 'count', path: prng.pick(['/w', '/w/t', '/w/r', this.#aclPath()]) }
      case 'addWatch': {
        const path = this.#lastingPath()
        return { op: 'addWatch', path, recursive: RECURSIVE.has(path) }
      }
      case 'removeWatches':
      case 'checkWatches':
        return {
          op: deed,
          path: prng.pick([this.#lastingPath(), this.#anyPath()]),
          watches: prng.pick(['any', 'any', 'data', 'children', 'persistent', 'recursive'] as const),
        }
      case 'multiRead':
        return { op: 'multiRead', parts: this.#readParts() }
      case 'whoAmI':
        return { op: 'whoAmI' }
      case 'quota':
        return this.#quotaRequest()
      case 'quotaUse':
        return { op: 'get', path: QUOTA_STATS, watch: false }
      case 'largeTree':
        return drawLargeTreeRequest(prng, this.#value())
      case 'sync':
        return { op: 'sync', path: '/w' }
      case 'close':
        return { op: 'close' }
    }
  }

  /** Returns an operation on a node with an access list of its own. */
  #aclRequest(): Request {
    const { prng } = this.#options
    const path = this.#aclPath()
    const acl = prng.pick(['open', 'mine', 'readable', 'ann', 'benReads'] as const)
    const data = this.#value()
    switch (
      prng.pickWeighted({
        create: 3,
        below: 2,
        set: 2,
        delete: 2,
        setAcl: 2,
        get: 2,
        children: 1,
        check: 1,
      })
    ) {
      case 'create':
        return { op: 'create', path, data, mode: 'persistent', acl }
      case 'below':
        return { op: 'create', path: `${path}/${prng.below(2)}`, data, mode: 'persistent' }
      case 'set':
        return { op: 'set', path, data, version: -1 }
      case 'delete':
        return { op: 'delete', path: prng.pick([path, `${path}/${prng.below(2)}`]), version: -1 }
      case 'setAcl':
        return { op: 'setAcl', path, acl, version: prng.pick([-1, -1, 0, 1]) }
      case 'get':
        return { op: prng.pick(['get', 'exists'] as const), path, watch: true }
      case 'children':
        return { op: 'children', path, watch: true }
      case 'check':
        return {
          op: 'multi',
          parts: [
            { op: 'check', path, version: -1 },
            { op: 'set', path, data, version: -1 },
            { op: 'create', path: `${path}/m`, data, mode: 'sequential', acl },
          ],
        }
    }
  }

  /** Returns an operation below the quota. */
  #quotaRequest(): Request {
    const { prng } = this.#options
    const path = `${QUOTA_PATH}/${prng.below(8)}`
    const data = `${this.#value()}${'+'.repeat(prng.below(60))}`
    switch (prng.pickWeighted({ create: 3, set: 2, delete: 1.5 })) {
      case 'create':
        return { op: 'create', path, data, mode: prng.pick(['persistent', 'ephemeral'] as const) }
      case 'set':
        return { op: 'set', path, data, version: -1 }
      case 'delete':
        return { op: 'delete', path, version: -1 }
    }
  }

  #readParts(): ReadPart[] {
    const { prng } = this.#options
    return Array.from({ length: prng.integer(1, 5) }, () =>
      prng.chance(0.3)
        ? { op: 'children', path: prng.pick(['/w/t', '/w/s', '/w/e', this.#aclPath()]) }
        : { op: 'get', path: prng.pick([this.#anyPath(), this.#register(), this.#aclPath(), QUOTA_STATS]) },
    )
  }

  #aclPath(): string {
    return `/w/a/${this.#options.prng.below(4)}`
  }

  #lastingPath(): string {
    return this.#options.prng.pick([...RECURSIVE, '/w/e', '/w/s', '/w/r/0', '/w/t/1', '/w/e/2'])
  }

  /** Returns an operation, or a multi with one, that expects a version: the last one that was seen, an older or a later one. */
  #conditional(): Request {
    const { prng } = this.#options
    const path = prng.pick([this.#register(), this.#leaf(), this.#leaf(), this.#aclPath()])
    const kind = prng.pickWeighted({ set: 3, delete: 3, setAcl: 1, check: 2 })
    const version = Math.max(0, (this.#versions.get(path) ?? 0) + prng.pick([0, 0, 0, -1, -2, 1]))
    if (kind === 'setAcl') return { op: 'setAcl', path: this.#aclPath(), acl: 'open', version: prng.below(4) }
    // Registers stay, so that other clients find them.
    const part: MultiPart =
      kind === 'set' || (kind === 'delete' && path.startsWith('/w/r'))
        ? { op: 'set', path, data: this.#value(), version }
        : kind === 'delete'
          ? { op: 'delete', path, version }
          : { op: 'check', path, version }
    if (part.op !== 'check' && prng.chance(0.6)) return part
    const other: MultiPart = { op: 'set', path: this.#register(), data: this.#value(), version: -1 }
    return { op: 'multi', parts: prng.shuffled([part, other]) }
  }

  /** Returns the creation of so many ephemeral nodes that the end of the session takes several turns. */
  #manyEphemerals(): MultiPart[] {
    const name = this.#value()
    return Array.from({ length: this.#options.prng.integer(120, 260) }, (_, index) => ({
      op: 'create',
      path: `/w/n/${name}-${index}`,
      data: '',
      mode: 'ephemeral',
    }))
  }

  #parts(): MultiPart[] {
    const { prng } = this.#options
    const parts: MultiPart[] = [{ op: 'set', path: this.#register(), data: this.#value(), version: -1 }]
    if (prng.chance(0.5)) parts.push({ op: 'set', path: this.#register(), data: this.#value(), version: -1 })
    if (prng.chance(0.4))
      parts.push({ op: 'create', path: this.#leaf(), data: this.#value(), mode: 'persistent' })
    if (prng.chance(0.3)) parts.push({ op: 'create', path: '/w/s/m', data: '', mode: 'sequential' })
    if (prng.chance(0.2)) parts.push({ op: 'delete', path: this.#leaf(), version: -1 })
    return prng.shuffled(parts)
  }

  /**
   * Returns so many operations that a server applies them in several turns. A few concern a node of their own;
   * occasionally one fails.
   */
  #largeMulti(): MultiPart[] {
    const { prng } = this.#options
    const parts: MultiPart[] = Array.from({ length: prng.integer(250, 500) }, () => ({
      op: 'set',
      path: this.#register(),
      data: this.#value(),
      version: -1,
    }))
    const path = `/w/t/${this.#value()}`
    parts.splice(prng.below(200), 0, { op: 'create', path, data: '', mode: 'persistent' })
    parts.splice(prng.integer(201, 240), 0, { op: 'set', path, data: 'known', version: 0 })
    parts.push({ op: 'delete', path, version: 1 })
    if (prng.chance(0.2))
      parts.splice(prng.below(parts.length), 0, { op: 'check', path: this.#register(), version: 1_000_000 })
    return parts
  }

  #register(): string {
    return `/w/r/${this.#options.prng.below(6)}`
  }

  #leaf(): string {
    const { prng } = this.#options
    const parent = prng.chance(0.2) ? `/w/t/c${prng.below(3)}` : '/w/t'
    return `${parent}/${prng.below(6)}`
  }

  /** Returns a path to delete; among them containers with children, whose deletion must fail. */
  #pathToDelete(): string {
    const { prng } = this.#options
    return prng.pick([
      this.#leaf(),
      this.#leaf(),
      this.#leaf(),
      `/w/e/${prng.below(5)}`,
      `/w/t/c${prng.below(3)}`,
    ])
  }

  #anyPath(): string {
    const { prng } = this.#options
    return prng.pick([this.#register(), this.#register(), this.#leaf(), `/w/e/${prng.below(5)}`])
  }

  #value(): string {
    return `${this.client.name}:${this.#values++}`
  }

  #recordVersion({ request, result }: Operation): void {
    if ((request.op === 'get' || request.op === 'set') && result.stat !== undefined)
      this.#versions.set(request.path, result.stat.version)
  }
}
