import { sha256 } from '@zabra/protocol'
import { addressBlockOf, type Clock, type HttpRequest } from '@zabra/runtime'
import { certificateIdentities } from '../../connections/auth-policy.ts'
import { addIdentities, authenticate, ipMatches, isLoopback } from '../../core/auth/index.ts'
import type { Identity } from '../../core/types.ts'
import type { ServerSettings } from '../../settings/index.ts'
import { AdminTokens } from './tokens.ts'
import type { AdminRole } from './roles.ts'
import type { CallerRequest } from './trusted-proxies.ts'

/** Why a request is refused: the status, and the error as Apache ZooKeeper words it where it has one. */
export interface Refusal {
  readonly status: 401 | 403 | 421 | 429
  readonly error: string
  readonly retryAfterSeconds?: number
}

/** Wrong credentials of an address, or network of IPv6, after which it has to wait. */
const FREE_FAILURES = 3
const MAX_WAIT_MS = 30_000
/** How long after the last one they are remembered. A login that succeeds ends nothing: its owner may guess others in between. */
const MEMORY_MS = 600_000
/** Addresses whose failures are remembered; the oldest is forgotten first. */
const MAX_ADDRESSES = 1000

/** Wrong credentials of an address that are known when they come again; the oldest are forgotten first. */
const MAX_KNOWN = 8
/** Longer credentials are not remembered. */
const MAX_KNOWN_LENGTH = 2048

/** The failed logins of an address. Times are on the monotonic clock. */
interface Failures {
  /** How many, without those that repeat one of `known`: they tell their caller nothing. */
  readonly count: number
  readonly at: number
  /** Until when it has to wait. */
  readonly until: number
  /** Hashes of the last wrong credentials, oldest first. */
  readonly known: readonly string[]
}

/** What a request proves by a certificate, and by its header; `refused` for wrong credentials. */
interface Proved {
  readonly certificate: readonly Identity[] | undefined
  readonly header: readonly Identity[] | 'refused' | undefined
}

/** Decides who may do what on the HTTP port. */
export class AdminAccess {
  readonly #settings: ServerSettings
  readonly #clock: Pick<Clock, 'monotonic' | 'wall'>
  /** The tokens of the file; replaced when it is read again. */
  tokens = AdminTokens.none
  readonly #onFailedLogin: (host: string) => void
  readonly #failures = new Map<string, Failures>()

  /** `onFailedLogin` counts refused credentials of an address. */
  constructor(
    settings: ServerSettings,
    clock: Pick<Clock, 'monotonic' | 'wall'>,
    onFailedLogin: (host: string) => void,
  ) {
    this.#settings = settings
    this.#clock = clock
    this.#onFailedLogin = onFailedLogin
  }

  /**
   * Returns why the request is refused; undefined when its caller has the role. `hosts` are the names under which this server is
   * known: a request that names another one may come from a web page whose name was rebound to this address.
   */
  refusalOf(request: CallerRequest, role: AdminRole, hosts: Iterable<string>): Refusal | undefined {
    // Whatever a caller sends, probes get the truth: a refused probe restarts a healthy server.
    if (role === 'health') return undefined
    if (isFromForeignPage(request) && !(role === 'metrics' && /^(?:GET|HEAD)$/.test(request.method)))
      return { status: 403, error: 'Requests of pages from other origins are refused' }
    const { host } = request.remote
    const hasCredentials = request.headers['authorization'] !== undefined
    const wait = hasCredentials ? this.#waitMsOf(host) : 0
    if (wait > 0)
      return { status: 429, error: 'Too many failed logins', retryAfterSeconds: Math.ceil(wait / 1000) }
    const { certificate, header } = this.#authenticate(request)
    const proved = header === 'refused' ? header : joined(certificate, header)
    const roles =
      proved === 'refused' ? NO_ROLES : this.#rolesOf((proved ?? []).filter(({ scheme }) => scheme !== 'ip'))
    // A digest proves some identity whatever its password is: only one that has a role is a login.
    const isGuess = isDigest(request) && header !== 'refused' && this.#rolesOf(header ?? []).size === 0
    if (header === 'refused' || isGuess) this.#countFailure(host, String(request.headers['authorization']))
    if (roles.has(role)) return undefined
    if (proved === 'refused') return { status: 401, error: 'Not authenticated' }
    if (this.#rolesOfAddress(request).has(role)) {
      if (role === 'metrics' || isKnownHost(request, [...hosts, ...this.#settings.adminHosts]))
        return undefined
      return {
        status: 421,
        error: 'Unknown Host: use an address, localhost, or a name that admin.hosts lists',
      }
    }
    return proved === undefined
      ? { status: 401, error: 'Auth info is missing for the command' }
      : { status: 403, error: 'Not authorized' }
  }

  /** Returns the identities that the request proves; none where its credentials are refused. */
  identitiesOf(request: HttpRequest): readonly Identity[] {
    const { certificate, header } = this.#authenticate(request)
    return header === 'refused' ? [] : (joined(certificate, header) ?? [])
  }

  #authenticate(request: HttpRequest): Proved {
    const { authorization } = request.headers
    const certificate = request.peer && certificateIdentities(request.peer, this.#settings)
    if (typeof authorization !== 'string') return { certificate, header: undefined }
    const [scheme = '', data, ...rest] = authorization.trim().split(/ +/)
    if (rest.length > 0) return { certificate, header: 'refused' }
    const header = this.#identitiesOf(scheme.toLowerCase(), data, request, certificate) ?? 'refused'
    return { certificate, header }
  }

  #identitiesOf(
    scheme: string,
    data: string | undefined,
    { remote }: HttpRequest,
    certificate: readonly Identity[] | undefined,
  ): readonly Identity[] | undefined {
    const { superDigest, digestAuthEnabled } = this.#settings
    switch (scheme) {
      case 'x509':
        return certificate
      case 'ip':
        return [{ scheme: 'ip', id: remote.host }]
      case 'digest':
        if (!digestAuthEnabled || data === undefined) return undefined
        return authenticate('digest', new TextEncoder().encode(data), { remoteIp: remote.host, superDigest })
      case 'basic':
        return this.#login(data)
      case 'bearer': {
        const name = data === undefined ? undefined : this.tokens.nameOf(data, this.#clock.wall())
        return name === undefined ? undefined : [{ scheme: 'token', id: name }]
      }
      default:
        return undefined
    }
  }

  /** Logs a SASL user in by name and password. */
  #login(data: string | undefined): readonly Identity[] | undefined {
    const { saslUsers, saslSuperUsers } = this.#settings
    const text = decodeBase64(data ?? '')
    const colon = text.indexOf(':')
    if (colon < 0) return undefined
    const user = text.slice(0, colon)
    const expected = Object.hasOwn(saslUsers, user) ? saslUsers[user]! : undefined
    if (!isSameText(expected ?? '', text.slice(colon + 1)) || expected === undefined) return undefined
    return [
      { scheme: 'sasl', id: user },
      ...(saslSuperUsers.includes(user) ? [{ scheme: 'super', id: '' }] : []),
    ]
  }

  /** Returns the roles that a caller has without credentials, by its address where that is known. */
  #rolesOfAddress({ remote: { host }, forwarded }: CallerRequest): ReadonlySet<AdminRole> {
    const roles = this.#rolesOf(forwarded === 'unnamed' ? [] : [{ scheme: 'ip', id: host }])
    for (const role of this.#settings.adminAnonymous)
      if (role !== 'local-view') roles.add(role)
      else if (forwarded === undefined && isLoopback(host)) roles.add('view')
    if (roles.has('view')) roles.add('metrics')
    return roles
  }

  /** Returns the roles that the settings give to identities. */
  #rolesOf(identities: readonly Identity[]): Set<AdminRole> {
    const settings = this.#settings
    const roles = new Set<AdminRole>()
    const given: readonly (readonly [AdminRole, readonly string[]])[] = [
      ['metrics', settings.adminRoleMetrics],
      ['view', settings.adminRoleView],
      ['operate', settings.adminRoleOperate],
      ['backup', settings.adminRoleBackup],
      ['admin', settings.adminRoleAdmin],
    ]
    for (const [role, members] of given)
      if (members.some((member) => identities.some((identity) => isMember(identity, member)))) roles.add(role)
    for (const { scheme, id } of identities)
      if (scheme === 'token') for (const role of this.tokens.rolesOf(id)) roles.add(role)
    const isAdmin = roles.has('admin') || identities.some(({ scheme }) => scheme === 'super')
    if (isAdmin) for (const role of ['admin', 'backup', 'operate'] as const) roles.add(role)
    if (roles.has('operate') || roles.has('backup')) roles.add('view')
    if (roles.has('view')) roles.add('metrics')
    return roles
  }

  #waitMsOf(host: string): number {
    return (this.#failures.get(addressBlockOf(host))?.until ?? 0) - this.#clock.monotonic()
  }

  /** Has the address wait after a guess. A caller that repeats wrong credentials, such as a revoked token, delays no other of its address. */
  #countFailure(host: string, credentials: string): void {
    this.#onFailedLogin(host)
    const block = addressBlockOf(host)
    const at = this.#clock.monotonic()
    const last = this.#failures.get(block)
    const before = last !== undefined && at - last.at < MEMORY_MS ? last : NO_FAILURES
    const hash = credentials.length > MAX_KNOWN_LENGTH ? undefined : hashOf(credentials)
    if (hash !== undefined && before.known.includes(hash)) return
    const count = before.count + 1
    const waitMs = count < FREE_FAILURES ? 0 : Math.min(MAX_WAIT_MS, 1000 * 2 ** (count - FREE_FAILURES))
    const known = hash === undefined ? before.known : [...before.known, hash].slice(-MAX_KNOWN)
    this.#failures.delete(block)
    this.#failures.set(block, { count, at, until: at + waitMs, known })
    if (this.#failures.size > MAX_ADDRESSES) this.#failures.delete(this.#failures.keys().next().value!)
  }
}

const NO_FAILURES: Pick<Failures, 'count' | 'known'> = { count: 0, known: [] }

/** Returns the identities of both, undefined without any credentials. */
const joined = (
  certificate: readonly Identity[] | undefined,
  header: readonly Identity[] | undefined,
): readonly Identity[] | undefined =>
  header === undefined ? certificate : addIdentities(certificate ?? [], header)

/** Returns whether an entry of `admin.role.*` names an identity: `scheme:id`, a network for `ip`, a trailing `*` for any rest. */
function isMember({ scheme, id }: Identity, member: string): boolean {
  if (member === 'super') return scheme === 'super'
  const colon = member.indexOf(':')
  if (member.slice(0, colon) !== scheme) return false
  const pattern = member.slice(colon + 1)
  if (scheme === 'ip') return ipMatches(id, pattern)
  return pattern.endsWith('*') ? id.startsWith(pattern.slice(0, -1)) : id === pattern
}

/** Returns a hash, which is kept in place of credentials: a wrong password may be nearly right. */
const hashOf = (credentials: string): string =>
  String.fromCharCode(...sha256(new TextEncoder().encode(credentials)))

const NO_ROLES: ReadonlySet<AdminRole> = new Set()

const isDigest = ({ headers }: HttpRequest): boolean => /^digest /i.test(String(headers['authorization']))

/** Returns whether a web page of another origin has made the request. Programs send neither header. */
function isFromForeignPage({ headers }: HttpRequest): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site !== 'same-origin' && site !== 'none'
  return headers['origin'] !== undefined
}

/** Returns whether `Host` is an address, `localhost` or one of the names. A page cannot be rebound to an address. */
function isKnownHost({ headers }: HttpRequest, names: readonly string[]): boolean {
  const { host } = headers
  if (typeof host !== 'string') return true
  const name = host.replace(/:\d+$/, '').toLowerCase()
  return (
    /^\d+(?:\.\d+){3}$|^\[[0-9a-f:.]+\]$|^localhost$/.test(name) ||
    names.some((known) => known.toLowerCase() === name)
  )
}

/** Compares in a time that does not depend on where the texts differ. */
function isSameText(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let i = 0; i < b.length; i++) difference |= (a.charCodeAt(i) || 0) ^ b.charCodeAt(i)
  return difference === 0
}

function decodeBase64(text: string): string {
  try {
    return new TextDecoder().decode(Uint8Array.from(atob(text), (character) => character.charCodeAt(0)))
  } catch {
    return ''
  }
}
