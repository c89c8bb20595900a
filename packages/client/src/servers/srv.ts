import type { Cancel, Clock } from '@zabra/runtime'
import { errorOf } from '../error-of.ts'
import { abortError, UsageError } from '../errors.ts'
import { noop } from '../noop.ts'
import { onAbort } from '../on-abort.ts'
import type { Session } from '../session/session.ts'
import type { Platform, ServerAddress } from '../platform.ts'
import { addressKey, mergeChroots, type ServerList } from './connect-string.ts'
import { randomFraction } from '../random-fraction.ts'

/** Lookup interval while the client is connected, and while it is not. */
const REFRESH_MS = 60_000
const URGENT_MS = 5000
const BASE_MS = 100
const CAP_MS = 5000

/** A name whose SRV records list the servers. */
export interface SrvService {
  readonly name: string
  readonly scheme: 'tcp' | 'tls'
  readonly chroot: string
}

/**
 * Parses `dns-srv://name[/chroot]` or `dns-srv+tls://…`; returns undefined for other server lists. Throws a
 * `UsageError`.
 */
export function parseSrv(servers: string | readonly string[], chroot?: string): SrvService | undefined {
  if (typeof servers !== 'string' || !servers.startsWith('dns-srv')) return undefined
  const match = /^dns-srv(\+tls)?:\/\/([^/,:\s]+)(\/.*)?$/.exec(servers)
  if (match === null) {
    throw new UsageError(
      `Expected a service as dns-srv://name/chroot, such as dns-srv://_zookeeper._tcp.example.com, got ${JSON.stringify(servers)}`,
    )
  }
  const [, secure, name = '', root] = match
  return { name, scheme: secure === undefined ? 'tcp' : 'tls', chroot: mergeChroots(root, chroot) }
}

/** Servers found by an SRV name. */
export interface FoundServers extends ServerList {
  /** Passes later changes of the records to a session. */
  follow(session: Session): void
}

/**
 * Looks up an SRV name until the lookup succeeds; resolves to undefined for other server lists. Rejects with a
 * `UsageError` if the name is invalid or the platform has no lookup, and when `signal` aborts.
 */
export async function findBySrv(
  platform: Platform,
  servers: string | readonly string[],
  { chroot, signal, timeoutMs }: FindServersOptions & { readonly timeoutMs?: number | undefined } = {},
): Promise<FoundServers | undefined> {
  const service = parseSrv(servers, chroot)
  if (service === undefined) return undefined
  return {
    servers: await withinTime(platform.clock, timeoutMs, signal, (limited) =>
      resolveSrvUntilFound(service, platform, limited),
    ),
    chroot: service.chroot,
    follow: (session) =>
      followSrv(session, () => resolveSrvServers(service, platform.resolveSrv!), platform.clock),
  }
}

/** Runs a lookup with a signal that also aborts after `timeoutMs`. */
async function withinTime<T>(
  clock: Clock,
  timeoutMs: number | undefined,
  signal: AbortSignal | undefined,
  run: (signal: AbortSignal | undefined) => Promise<T>,
): Promise<T> {
  if (timeoutMs === undefined) return run(signal)
  const limit = new AbortController()
  const stopListening = onAbort(signal, () => limit.abort(signal?.reason))
  const cancel = clock.after(timeoutMs, 'limit of connect', () =>
    limit.abort(new DOMException(`No server was found within ${timeoutMs} ms`, 'TimeoutError')),
  )
  try {
    return await run(limit.signal)
  } finally {
    cancel()
    stopListening()
  }
}

export interface FindServersOptions {
  /** A chroot, which must not differ from one in the connect string. */
  readonly chroot?: string | undefined
  /** Aborts the lookup. */
  readonly signal?: AbortSignal | undefined
}

/** Looks up the servers of an SRV name. Rejects when there are none. */
async function resolveSrvServers(
  { name, scheme }: SrvService,
  resolveSrv: NonNullable<Platform['resolveSrv']>,
): Promise<readonly ServerAddress[]> {
  const found = new Map<string, ServerAddress>()
  for (const { host, port } of await resolveSrv(name)) {
    // Names in records may end in the dot of the DNS root, which alone says that there is no server (RFC 2782).
    const server = { scheme, host: host.replace(/\.$/, ''), port }
    if (server.host !== '') found.set(addressKey(server), server)
  }
  if (found.size === 0) throw new Error(`The service ${name} has no servers`)
  return [...found.values()]
}

/**
 * Looks up the servers until the lookup succeeds. Rejects when `signal` aborts, with the reason of the last failure.
 */
async function resolveSrvUntilFound(
  service: SrvService,
  platform: Platform,
  signal: AbortSignal | undefined,
): Promise<readonly ServerAddress[]> {
  const { resolveSrv, clock, random } = platform
  if (resolveSrv === undefined) {
    throw new UsageError(
      'Expected servers by their addresses: this platform has no SRV lookup for dns-srv:// names',
    )
  }
  let reason = 'The lookup was aborted'
  for (let tries = 0; ; tries++) {
    try {
      return await raceAbort(signal, resolveSrvServers(service, resolveSrv))
    } catch (error) {
      // The end of the time says nothing that the lookup before did not say better.
      if (signal?.aborted !== true) reason = errorOf(error).message
    }
    const wait = randomFraction(random) * Math.min(CAP_MS, BASE_MS * 2 ** Math.min(tries, 10))
    let cancel: Cancel = noop
    const waited = new Promise<void>((resolve) => (cancel = clock.after(wait, 'resolve servers', resolve)))
    await raceAbort(signal, waited).catch(noop)
    cancel()
    if (signal?.aborted) {
      const error = abortError(signal.reason, { operation: 'connect' })
      error.message += `; the last lookup of ${service.name} failed: ${reason}`
      throw error
    }
  }
}

async function raceAbort<T>(signal: AbortSignal | undefined, promise: Promise<T>): Promise<T> {
  if (signal === undefined) return promise
  let stopListening: () => void = noop
  const aborted = new Promise<never>((_resolve, reject) => {
    stopListening = onAbort(signal, () => reject(new Error('Aborted')))
  })
  return Promise.race([promise, aborted]).finally(stopListening)
}

/**
 * Looks the servers up again periodically and whenever the connection is lost, and passes a new list to the session,
 * which rebalances. A failed or empty lookup changes nothing.
 */
function followSrv(session: Session, resolve: () => Promise<readonly ServerAddress[]>, clock: Clock): void {
  let cancel: Cancel = noop
  const next = (): void => {
    const connected = session.state === 'connected' || session.state === 'connectedReadOnly'
    if (session.terminalError === undefined)
      cancel = clock.after(connected ? REFRESH_MS : URGENT_MS, 'resolve servers', refresh)
  }
  let isResolving = false
  const refresh = (): void => {
    cancel()
    if (isResolving) return
    isResolving = true
    resolve()
      .then((servers) => session.updateServers(servers))
      .catch(noop)
      .finally(() => {
        isResolving = false
        next()
      })
  }
  const watchStates = async (): Promise<void> => {
    for await (const { state } of session.states.listen(session)) {
      if (state === 'suspended') refresh()
    }
    cancel()
  }
  next()
  void watchStates()
}
