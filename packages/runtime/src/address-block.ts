/** fe80::/10. */
const LINK_LOCAL = /^fe[89ab][\da-f]:/i

/**
 * Returns what limits by address count as one address: an IPv4 address, mapped into IPv6 or not, or the /64 network of an IPv6
 * address, since one host has all addresses of its network. All hosts of a link share the network of their link-local addresses, so each
 * of those counts alone, with its interface. Any other text is returned as it is.
 */
export function addressBlockOf(host: string): string {
  if (!host.includes(':')) return host
  if (LINK_LOCAL.test(host)) return host.toLowerCase()
  const plain = host.split('%', 1)[0]!
  const mapped = /^(?:0*:)*:?ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined) return mapped
  const [head, tail] = plain.split('::', 2).map((half) => (half === '' ? [] : half.split(':')))
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - head!.length - tail.length)
  const groups = [...head!, ...new Array<string>(zeros).fill('0'), ...(tail ?? [])]
  const network = groups.slice(0, 4).map((group) => group.toLowerCase().replace(/^0+(?=.)/, ''))
  return `${network.join(':')}::/64`
}
