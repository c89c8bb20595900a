import { ZooKeeperClient } from './client.ts'
import { checkOptions } from './options.ts'
import { abortError, ClosedError, UsageError, type ZooKeeperError } from './errors.ts'
import { backoff } from './retry.ts'
import { resolveServers, followSrv, resolveSrvServers } from './servers/srv.ts'
import type { SessionOptions } from './session/options.ts'
import { Session } from './session/session.ts'
import { checkSchemes } from './transport.ts'
import type {
  AuthInfo,
  Client,
  ClientOptions,
  Platform,
  Instrumentation,
  RetryPolicy,
  Transport,
} from './types.ts'

export type ConnectOptions = ClientOptions & {
  /** Gives up connecting. */
  readonly signal?: AbortSignal
}

/** What an entry point brings along. */
export interface ConnectDefaults {
  readonly transport?: Transport
  readonly platform: Platform
  /** Adds what the platform observes with to the hooks of the user. */
  readonly wrapInstrumentation?: (hooks: Instrumentation | undefined) => Instrumentation
}

const NO_AUTH: readonly AuthInfo[] = []
const RETRY_WITHOUT_LIMIT: RetryPolicy = {}
const DEFAULT_BATCH_SIZE = 64

/**
 * Opens a session, and resolves when it exists. Without a `signal` it tries for ever. Rejects with a `UsageError` when an
 * option cannot be right, an `AuthFailedError`, a `SessionExpiredError` (for a given session, with `sessionExpiry:
 * 'close'`), and when the signal aborts.
 */
export async function connectWith(options: ConnectOptions, surroundings: ConnectDefaults): Promise<Client> {
  checkOptions(options)
  const transport = options.transport ?? surroundings.transport
  if (transport === undefined) throw new UsageError('Expected a transport: this entry point brings none')
  const { signal } = options
  const ports =
    options.platform === undefined ? surroundings.platform : { ...surroundings.platform, ...options.platform }
  const { servers, chroot, service } = await resolveServers(ports, options.servers, options)
  checkSchemes(servers, transport.schemes)
  if (options.trackEnsemble && servers.some(({ scheme }) => scheme !== 'tcp')) {
    throw new UsageError(
      'Expected trackEnsemble with addresses over plain TCP: the configuration of an ensemble names no others',
    )
  }
  const complete = shareOptions({
    servers,
    transport,
    platform: ports,
    clock: ports.clock,
    random: ports.random,
    sessionTimeout: options.sessionTimeout ?? 30_000,
    sessionExpiry: options.sessionExpiry ?? 'renew',
    readOnly: options.readOnly ?? false,
    auth: options.auth ?? NO_AUTH,
    sasl: options.sasl,
    retry: options.retry ?? RETRY_WITHOUT_LIMIT,
    chroot,
    errorPolicy: options.errorPolicy ?? 'connection',
    offlineQueue: options.offlineQueue ?? 10_000,
    maxFrame: options.maxFrame ?? 4 * 1024 * 1024,
    maxRequest: options.maxRequest ?? 1024 * 1024 - 1024,
    batchReads: maxBatchedReads(options.batchReads),
    instrumentation: surroundings.wrapInstrumentation?.(options.instrumentation) ?? options.instrumentation,
    callerStacks: options.callerStacks ?? false,
    redactPath: options.redactPath,
  })
  const session = new Session(complete, options.session)
  const client = new ZooKeeperClient(session, chroot, true)
  await waitForSession(session, signal)
  try {
    if (options.createChroot && chroot !== '')
      await client.mkdirp('/', signal === undefined ? {} : { signal })
  } catch (error) {
    await client.close()
    throw error
  }
  if (service !== undefined)
    followSrv(session, () => resolveSrvServers(service, ports.resolveSrv!), ports.clock)
  if (options.trackEnsemble) void trackEnsemble(client)
  return client
}

/** How many reads leave together, 0 for never. */
function maxBatchedReads(batchReads: ClientOptions['batchReads']): number {
  if (batchReads === undefined || batchReads === false) return 0
  return batchReads === true ? DEFAULT_BATCH_SIZE : (batchReads.most ?? DEFAULT_BATCH_SIZE)
}

let latest: WeakRef<SessionOptions> | undefined
let names: (keyof SessionOptions)[] | undefined

/** The options of the client before, if they are the same: a process may hold thousands of clients with equal ones. */
function shareOptions(options: SessionOptions): SessionOptions {
  const before = latest?.deref()
  names ??= Object.keys(options) as (keyof SessionOptions)[]
  if (before !== undefined && names.every((name) => options[name] === before[name])) return before
  latest = new WeakRef(options)
  return options
}

function waitForSession(session: Session, signal: AbortSignal | undefined): Promise<void> {
  const first = session.states.firstConnection()
  if (signal === undefined) {
    session.start()
    return first
  }
  let aborted: ZooKeeperError | undefined
  const abort = (): void => {
    const error = abortError(signal.reason, { operation: 'connect' })
    const failure = session.lastFailure
    if (failure !== undefined)
      error.message += `; the last attempt, to ${failure.server}, failed: ${failure.error.message}`
    aborted = error
    session.finish(new ClosedError('Connecting was aborted', 'CLOSED', { cause: error }))
  }
  if (signal.aborted) abort()
  else {
    signal.addEventListener('abort', abort, { once: true })
    session.start()
  }
  const settled = (): void => signal.removeEventListener('abort', abort)
  // Nothing comes between the last look at the signal and the end of listening to it.
  return first.then(
    () => {
      settled()
      if (aborted !== undefined) throw aborted
    },
    (error: unknown) => {
      settled()
      throw aborted ?? error
    },
  )
}

/** Follows the servers that the ensemble names in its configuration, until the client ends. */
async function trackEnsemble(client: ZooKeeperClient): Promise<void> {
  const decoder = new TextDecoder()
  const all = client.withoutChroot().clone()
  for (let failures = 0; all.sharedSession.terminalError === undefined;) {
    try {
      const watch = await all.watchOnce('/zookeeper/config', 'data')
      failures = 0
      const servers = parseClientAddresses(decoder.decode(watch.data))
      if (servers.length > 0) await client.updateServerList(servers)
      await watch.fired
    } catch {
      // Expired, or not readable for now: it is asked again, less and less often.
      await backoff(all, failures++)
    }
  }
}

/** The addresses for clients in `server.1=host:2888:3888:participant;0.0.0.0:2181` lines. */
export function parseClientAddresses(config: string): string[] {
  const addresses: string[] = []
  for (const [, spec = ''] of config.matchAll(/^server\.\d+=(.*)$/gm)) {
    // Alternatives of one server stand behind |; the first is taken.
    const [server = '', client] = spec.split('|')[0]!.split(';')
    const match = /^(?:(.*):)?(\d+)$/.exec(client?.trim() ?? '')
    if (match === null) continue
    const anywhere =
      match[1] === undefined || match[1] === '0.0.0.0' || match[1] === '[::]' || match[1] === '::'
    const host = anywhere ? /^(\[[^\]]*\]|[^:]*)/.exec(server.trim())![1]! : match[1]!
    addresses.push(`${host.includes(':') && !host.startsWith('[') ? `[${host}]` : host}:${match[2]}`)
  }
  return addresses
}
