/** Returns the 4 or 16 bytes of an address, or undefined when the text is no address. */
export function parseIp(text: string): readonly number[] | undefined {
  return text.includes(':') ? parseIpv6(text) : parseIpv4(text)
}

// Apache parses each part as a decimal number, so a sign or leading zeros are accepted.
const IPV4 = /^([+-]?\d+)\.([+-]?\d+)\.([+-]?\d+)\.([+-]?\d+)$/

function parseIpv4(text: string): readonly number[] | undefined {
  const parts = IPV4.exec(text)
  if (parts === null) return undefined
  const bytes = [Number(parts[1]), Number(parts[2]), Number(parts[3]), Number(parts[4])]
  return bytes.every((byte) => byte >= 0 && byte <= 255) ? bytes : undefined
}

function parseIpv6(text: string): readonly number[] | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const groups = halves.map((half) => (half === '' ? [] : half.split(':')))
  if (!groups.flat().every((group) => /^[0-9a-fA-F]{1,4}$/.test(group))) return undefined
  const [head = [], tail = []] = groups
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const all = [...head, ...Array.from({ length: missing }, () => '0'), ...tail]
  return all.flatMap((group) => {
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 255]
  })
}

interface Network {
  readonly bytes: readonly number[]
  readonly bits: number
}

function parseNetwork(expression: string): Network | undefined {
  const slash = expression.indexOf('/')
  const bytes = parseIp(slash === -1 ? expression : expression.slice(0, slash))
  if (bytes === undefined) return undefined
  const all = bytes.length * 8
  if (slash === -1) return { bytes, bits: all }
  const bits = expression.slice(slash + 1)
  return /^\d+$/.test(bits) && Number(bits) <= all ? { bytes, bits: Number(bits) } : undefined
}

/** Returns whether an address is one of the machine itself. That of IPv4 is not mapped into IPv6. */
export const isLoopback = (host: string): boolean =>
  host.startsWith('127.') || /^(?:0*:)+0*1$/.test(host.split('%', 1)[0]!)

/** Returns whether an ACL entry of scheme `ip` may have this id: an address, or an address and a number of bits. */
export const isIpExpression = (expression: string): boolean => parseNetwork(expression) !== undefined

/** Returns whether an address is in the network of an entry's id. */
export const ipMatches = (address: string, expression: string): boolean => ipMatcherOf(expression)(address)

/** Returns `ipMatches` for one expression. */
export function ipMatcherOf(expression: string): (address: string) => boolean {
  const network = parseNetwork(expression)
  return network === undefined ? () => false : (address) => isIn(network, bytesOf(address))
}

/** The address that was parsed last: a list compares one address with all of its networks. */
let lastAddress = ''
let lastBytes: readonly number[] | undefined

function bytesOf(address: string): readonly number[] | undefined {
  if (address !== lastAddress) {
    lastAddress = address
    lastBytes = parseIp(address)
  }
  return lastBytes
}

function isIn(network: Network, bytes: readonly number[] | undefined): boolean {
  if (bytes === undefined || bytes.length !== network.bytes.length) return false
  return bytes.every((byte, i) => {
    const left = Math.max(0, Math.min(8, network.bits - i * 8))
    const mask = (0xff << (8 - left)) & 0xff
    return ((byte ^ network.bytes[i]!) & mask) === 0
  })
}

/** Returns an address in the form of identities: dotted for IPv4 and mapped IPv4, eight groups for IPv6. */
export function canonicalIp(host: string): string {
  const plain = host.split('%', 1)[0]!
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(plain)?.[1]
  if (mapped !== undefined) return mapped
  const bytes = parseIp(plain)
  if (bytes === undefined || bytes.length === 4) return plain
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[i * 2]! << 8) | bytes[i * 2 + 1]!).toString(16))
  return groups.join(':')
}
