import type { Address, HttpRequest } from '@zabra/runtime'
import { canonicalIp, ipMatcherOf, isLoopback, parseIp } from '../../core/auth/index.ts'

/** Most addresses of a header that are read, from its end: proxies behind each other. */
const MAX_HOPS = 16
/** An address, with a port or without; in brackets where IPv6 has one. */
const ENTRY = /^(?:(\d+(?:\.\d+){3})|\[([\da-f:.]+)\])(?::(\d{1,5}))?$|^([\da-f:.]+)$/i
/** Four decimal numbers without signs and leading zeros, which programs read in different ways. */
const IPV4 = /^(?:0|[1-9]\d{0,2})(?:\.(?:0|[1-9]\d{0,2})){3}$/

/** A request of the HTTP port, whose `remote` is the address of its caller as far as it is known. */
export interface CallerRequest extends HttpRequest {
  /**
   * How a trusted proxy has passed the request on: `named` where the proxy says who the caller is, `unnamed` where `remote` is the proxy
   * itself, which gives the caller no role. Undefined for other requests.
   */
  readonly forwarded?: 'named' | 'unnamed'
}

/** Finds out who has sent a request that came through proxies (`admin.trustedProxies`). */
export class TrustedProxies {
  readonly #matchers: readonly ((address: string) => boolean)[]

  /** `proxies` are addresses and networks. */
  constructor(proxies: readonly string[]) {
    this.#matchers = proxies.map(ipMatcherOf)
  }

  /** Returns a request with the address of its caller. */
  callerOf(request: HttpRequest): CallerRequest {
    const remote = { ...request.remote, host: plainAddress(request.remote.host) }
    if (!this.#isTrusted(remote.host)) return { ...request, remote }
    const caller = this.#lastUntrusted(request.headers['x-forwarded-for'])
    // An address of loopback would be that of the machine of the proxy.
    return caller === undefined || isLoopback(caller.host)
      ? { ...request, remote, forwarded: 'unnamed' }
      : { ...request, remote: caller, forwarded: 'named' }
  }

  #isTrusted(host: string): boolean {
    return this.#matchers.some((matches) => matches(host))
  }

  /**
   * Returns the last address of a header that is no trusted proxy; undefined where there is none, or what stands behind it is no address.
   * Each proxy adds the address from which it has the request at the end: what is before that one may be anything that the caller sent.
   */
  #lastUntrusted(header: string | readonly string[] | undefined): Address | undefined {
    if (header === undefined) return undefined
    const text = typeof header === 'string' ? header : header.join(',')
    let end = text.length
    for (let hop = 0; hop < MAX_HOPS && end >= 0; hop++) {
      const comma = end === 0 ? -1 : text.lastIndexOf(',', end - 1)
      const address = parseEntry(text.slice(comma + 1, end).trim())
      if (address === undefined || !this.#isTrusted(address.host)) return address
      end = comma
    }
    return undefined
  }
}

/** Returns an address as it is, but IPv4 that is mapped into IPv6 as IPv4: settings name it so. */
function plainAddress(host: string): string {
  const bytes = parseIp(host)
  const isMapped = bytes?.length === 16 && bytes.every((byte, i) => i > 11 || byte === (i < 10 ? 0 : 0xff))
  return isMapped ? bytes.slice(12).join('.') : (/^::ffff:([\d.]+)$/i.exec(host)?.[1] ?? host)
}

function parseEntry(entry: string): Address | undefined {
  const [, ipv4, bracketed, port, ipv6] = ENTRY.exec(entry) ?? []
  const text = ipv4 ?? bracketed ?? ipv6
  if (text === undefined) return undefined
  const host = plainAddress(text)
  const isAddress = host.includes('.') ? IPV4.test(host) : true
  if (!isAddress || parseIp(host) === undefined) return undefined
  return { host: host.includes(':') ? canonicalIp(host) : host, port: Number(port ?? 0) }
}
