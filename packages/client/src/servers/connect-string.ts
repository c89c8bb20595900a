import { shownUrl } from '@zabra/runtime'
import { normalizeChroot } from '../chroot.ts'
import { UsageError } from '../errors.ts'
import type { ServerAddress } from '../platform.ts'

const DEFAULT_PORTS = { tcp: 2181, tls: 2281, ws: 80, wss: 443 } as const

export interface ServerList {
  /** In the given order, without duplicates. */
  readonly servers: readonly ServerAddress[]
  /** Empty for none. */
  readonly chroot: string
}

/**
 * Parses `host[:port](,host[:port])*[/chroot]`, or a list of such hosts. An entry may begin with `tcp://`, `tls://`,
 * `ws://` or `wss://`. For a WebSocket entry everything after the host is part of the URL, so the chroot must be an
 * option. Throws a `UsageError`.
 */
export function parseServers(servers: string | readonly string[], chroot?: string): ServerList {
  if (typeof servers !== 'string' || chroot !== undefined) return parse(servers, chroot)
  // A program with thousands of clients passes the same string, and they share the result.
  if (latest?.servers !== servers) latest = { servers, list: parse(servers, undefined) }
  return latest.list
}

let latest: { readonly servers: string; readonly list: ServerList } | undefined

function parse(servers: string | readonly string[], chroot: string | undefined): ServerList {
  if (
    typeof servers !== 'string' &&
    !(Array.isArray(servers) && servers.every((entry) => typeof entry === 'string'))
  )
    throw new UsageError(`Expected servers as a connect string or a list of addresses, got ${typeof servers}`)
  const { entries, root } = typeof servers === 'string' ? split(servers) : { entries: [...servers], root: '' }
  const merged = mergeChroots(root, chroot)
  const unique = new Map<string, ServerAddress>()
  for (const entry of entries) {
    const server = parseServer(entry)
    unique.set(addressKey(server), server)
  }
  if (unique.size === 0)
    throw new UsageError('Expected at least one server, such as 127.0.0.1:2181, got none')
  return { servers: [...unique.values()], chroot: merged }
}

/** Parses a server list that replaces the current one. Throws a `UsageError` if it names another chroot. */
export function parseReplacementServers(
  servers: string | readonly string[],
  chroot: string,
): readonly ServerAddress[] {
  const list = parseServers(servers)
  if (list.chroot === '' || list.chroot === chroot) return list.servers
  throw new UsageError(
    `Expected a list with the chroot of this client, ${JSON.stringify(chroot)}, got ${JSON.stringify(list.chroot)}; use client.chroot() for another chroot`,
  )
}

/** Returns the chroot given in the connect string or as an option. Throws a `UsageError` when they differ. */
export function mergeChroots(root = '', chroot = ''): string {
  const fromOption = normalizeChroot(chroot)
  const fromServers = normalizeChroot(root)
  if (fromOption !== '' && fromServers !== '' && fromOption !== fromServers) {
    throw new UsageError(
      `Expected one chroot, got ${JSON.stringify(fromServers)} in the servers and ${JSON.stringify(fromOption)} as an option`,
    )
  }
  return fromOption === '' ? fromServers : fromOption
}

function split(text: string): { entries: string[]; root: string } {
  const entries = text.split(',').map((entry) => entry.trim())
  if (/^wss?:/.test(entries[0] ?? '')) return { entries, root: '' }
  // The first slash that is not part of a scheme begins the chroot.
  const slash = text.search(/(?<![:/])\/(?!\/)/)
  if (slash === -1) return { entries, root: '' }
  const hosts = text.slice(0, slash)
  return { entries: hosts.split(',').map((entry) => entry.trim()), root: text.slice(slash) }
}

function parseServer(entry: string): ServerAddress {
  const [, scheme = 'tcp', rest = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/s.exec(entry) ?? []
  if (scheme === 'ws' || scheme === 'wss') return parseUrl(entry, scheme)
  if (scheme !== 'tcp' && scheme !== 'tls') {
    throw new UsageError(
      `Expected a server with scheme tcp, tls, ws or wss, got ${JSON.stringify(scheme)} in ${JSON.stringify(entry)}`,
    )
  }
  const match = /^(?:\[([^\]]*)\]|([^:/[\]\s]*))(?::(\d*))?$/.exec(rest)
  const host = match?.[1] ?? match?.[2] ?? ''
  if (match === null || host === '') {
    const advice = rest.split(':').length > 2 ? '; write an IPv6 address in brackets, as [::1]:2181' : ''
    throw new UsageError(`Expected a server as host:port, got ${JSON.stringify(entry)}${advice}`)
  }
  return { scheme, host, port: match[3] ? parsePort(match[3], entry) : DEFAULT_PORTS[scheme] }
}

function parseUrl(entry: string, scheme: 'ws' | 'wss'): ServerAddress {
  let url: URL
  try {
    url = new URL(entry)
  } catch {
    // Without the error, which has the whole text.
    throw new UsageError(`Expected a WebSocket address, got ${JSON.stringify(shownUrl(entry))}`)
  }
  return {
    scheme,
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? DEFAULT_PORTS[scheme] : parsePort(url.port, entry),
    url: entry,
  }
}

function parsePort(text: string, entry: string): number {
  const port = Number(text)
  if (port < 1 || port > 65_535)
    throw new UsageError(`Expected a port from 1 to 65535, got ${text} in ${JSON.stringify(shownUrl(entry))}`)
  return port
}

/** Returns a string that identifies a server. */
export function addressKey(server: ServerAddress): string {
  const known = keys.get(server)
  if (known !== undefined) return known
  const { scheme, host, port, url } = server
  const key = url ?? `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
  keys.set(server, key)
  return key
}

/** Returns the address of a server for errors and observers: as its key, without the secrets of a URL. */
export const addressText = (server: ServerAddress): string =>
  server.url === undefined ? addressKey(server) : shownUrl(server.url)

/** Computed once for each address, for all clients and state changes. */
const keys = new WeakMap<ServerAddress, string>()

/** Returns whether two lists without duplicates contain the same servers. */
export function isSameServerSet(a: readonly ServerAddress[], b: readonly ServerAddress[]): boolean {
  const isIn = isOneOf(b)
  return a.length === b.length && a.every(isIn)
}

/** Returns whether a server is in a list, in constant time: a configuration that a server sends may have many thousands. */
export function isOneOf(list: readonly ServerAddress[]): (server: ServerAddress) => boolean {
  const known = new Set(list.map(addressKey))
  return (server) => known.has(addressKey(server))
}

export const isSameServer = (server: ServerAddress, other: ServerAddress | undefined): boolean =>
  other !== undefined && addressKey(server) === addressKey(other)
