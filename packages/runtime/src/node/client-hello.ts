/** First byte of a TLS handshake. A ZooKeeper frame that begins with it would be 352 MiB long. */
export const HANDSHAKE = 0x16
/** Longest ClientHello with the headers of its records, in bytes. Those with post-quantum key shares have less than 3 KiB. */
export const MAX_HELLO_BYTES = 16_384

const CLIENT_HELLO = 1
const RECORD_HEADER_BYTES = 5
const MESSAGE_HEADER_BYTES = 4
const SUPPORTED_VERSIONS = 43
const KEY_SHARE = 51
const TLS_1_3 = 0x0304

/**
 * Groups of the key exchange, best first. Those over finite fields are left out: with ffdhe8192, which OpenSSL accepts otherwise, one
 * ClientHello takes 95 ms of processor time. No client supports them alone.
 */
export const KEY_EXCHANGE_GROUPS = 'X25519:P-256:X448:P-521:P-384'
/** Their numbers (RFC 8446, 4.2.7). */
const GROUP_NUMBERS: ReadonlySet<number> = new Set([29, 23, 30, 25, 24])

/** What the first bytes of a connection are. */
export type FirstBytes =
  | { readonly kind: 'incomplete' }
  /** Something that a server refuses at once. */
  | { readonly kind: 'other' }
  /** With `needsRetry`, the server answers with a HelloRetryRequest, and the client sends another ClientHello. */
  | { readonly kind: 'hello'; readonly needsRetry: boolean }

/** Classifies the first bytes of a TLS connection. */
export function readClientHello(bytes: Uint8Array): FirstBytes {
  const message = new Uint8Array(bytes.length)
  let length = 0
  for (let at = 0; at < bytes.length;) {
    if (bytes[at] !== HANDSHAKE) return { kind: 'other' }
    const bodyAt = at + RECORD_HEADER_BYTES
    const end = bodyAt + ((bytes[at + 3] ?? 0) << 8) + (bytes[at + 4] ?? 0)
    const body = bytes.subarray(bodyAt, end)
    message.set(body, length)
    length += body.length
    if (length > 0 && message[0] !== CLIENT_HELLO) return { kind: 'other' }
    const wanted = MESSAGE_HEADER_BYTES + ((message[1]! << 16) | (message[2]! << 8) | message[3]!)
    if (length >= MESSAGE_HEADER_BYTES && length >= wanted)
      return { kind: 'hello', needsRetry: needsRetry(message.subarray(MESSAGE_HEADER_BYTES, wanted)) }
    // A record without contents is refused; an incomplete header has none yet.
    if (end === bodyAt && bytes.length >= bodyAt) return { kind: 'other' }
    at = Math.max(end, bodyAt)
  }
  return { kind: 'incomplete' }
}

/** Returns whether a ClientHello of TLS 1.3 offers no key share of a supported group. A malformed one is refused by OpenSSL. */
function needsRetry(hello: Uint8Array): boolean {
  const view = new DataView(hello.buffer, hello.byteOffset, hello.length)
  let isTls13 = false
  let hasShare = false
  try {
    // Version and random, session id, cipher suites, compression methods.
    let at = 34
    at += 1 + view.getUint8(at)
    at += 2 + view.getUint16(at)
    at += 1 + view.getUint8(at)
    at += 2
    while (at < hello.length) {
      const type = view.getUint16(at)
      const end = at + 4 + view.getUint16(at + 2)
      at += 4
      if (type === SUPPORTED_VERSIONS)
        for (let next = at + 1; next < end; next += 2) isTls13 ||= view.getUint16(next) === TLS_1_3
      else if (type === KEY_SHARE)
        for (let next = at + 2; next < end; next += 4 + view.getUint16(next + 2))
          hasShare ||= GROUP_NUMBERS.has(view.getUint16(next))
      at = end
    }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return false
  }
  return isTls13 && !hasShare
}
