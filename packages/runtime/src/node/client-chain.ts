import { DerError, DerReader, DerTag, type DerValue } from './der.ts'

/** Most certificates of a client. Newer versions of Java have the same limit. */
export const MAX_CERTIFICATES = 8
/** The certificates for which one with a key on P-521 counts: OpenSSL takes 1.2 to 1.6 ms for its signature, and half of that for others. */
const COUNT_OF_P521 = 2
/** Longest message with certificates, in bytes. */
export const MAX_CERTIFICATE_MESSAGE_BYTES = 32_768
const MAX_RSA_BITS = 8192
const MAX_EXPONENT_BITS = 32
/** OpenSSL compares each name with each constraint of all certificates above it. */
const MAX_NAMES = 1000
const MAX_NAME_CONSTRAINTS = 100
/**
 * The names for which an otherName counts. It may be an address of mail in UTF-8, for which OpenSSL decodes the domain of each constraint
 * again: 750 of them with 100 constraints take 110 ms.
 */
const COUNT_OF_OTHER_NAME = 100

const ALLOWED_KEYS = `RSA keys of up to ${MAX_RSA_BITS} bits with exponents of up to ${MAX_EXPONENT_BITS}, and keys on P-256, P-384, P-521, Ed25519 and Ed448`

/** Object identifiers as hexadecimal digits of their contents. */
const ELLIPTIC_KEY = '2a8648ce3d0201'
const RSA_KEYS: ReadonlySet<string> = new Set(['2a864886f70d010101', '2a864886f70d01010a'])
const EDWARDS_KEYS: ReadonlySet<string> = new Set(['2b6570', '2b6571'])
/** Curves, with the length of an uncompressed point: a compressed one costs a square root. */
const CURVES: ReadonlyMap<string, { readonly pointBytes: number; readonly count: number }> = new Map([
  ['2a8648ce3d030107', { pointBytes: 65, count: 1 }],
  ['2b81040022', { pointBytes: 97, count: 1 }],
  ['2b81040023', { pointBytes: 133, count: COUNT_OF_P521 }],
])
const UNCOMPRESSED = 4
const ALTERNATIVE_NAMES = '551d11'
const NAME_CONSTRAINTS = '551d1e'

/** What makes the verification of a chain long. */
interface Costs {
  certificates: number
  names: number
  constraints: number
}

class ChainError extends Error {
  override readonly name = 'ChainError'
}

/**
 * Returns why a server does not verify the certificates in a message of a client; undefined if their verification is short. OpenSSL
 * verifies all of a chain in one turn of the event loop, also of one that ends at no trusted authority.
 */
export function chainFault(message: Uint8Array, isTls13: boolean): string | undefined {
  const costs: Costs = { certificates: 0, names: 0, constraints: 0 }
  try {
    for (const certificate of certificatesIn(message, isTls13)) {
      addCosts(costs, certificate)
      requireAtMost(
        costs.certificates,
        MAX_CERTIFICATES,
        `certificates, where one on P-521 counts as ${COUNT_OF_P521}`,
      )
      requireAtMost(
        costs.names,
        MAX_NAMES,
        `names in certificates, where an otherName counts as ${COUNT_OF_OTHER_NAME}`,
      )
      requireAtMost(costs.constraints, MAX_NAME_CONSTRAINTS, 'constraints of names in certificates')
    }
  } catch (error) {
    if (error instanceof ChainError) return error.message
    if (error instanceof DerError) return 'its certificate is not in DER'
    throw error
  }
  return undefined
}

function requireAtMost(count: number, most: number, what: string): void {
  if (count > most) throw new ChainError(`it has shown more than ${most} ${what}`)
}

/** Yields the certificates of a message (RFC 5246, 7.4.2; RFC 8446, 4.4.2). */
function* certificatesIn(message: Uint8Array, isTls13: boolean): Generator<Uint8Array> {
  let at = 0
  const take = (lengthBytes: number): Uint8Array => {
    let length = 0
    for (let i = 0; i < lengthBytes; i++) length = (length << 8) | (message[at++] ?? 0)
    at += length
    if (at > message.length) throw new ChainError('its message with certificates is malformed')
    return message.subarray(at - length, at)
  }
  if (isTls13) take(1)
  const list = take(3)
  if (at !== message.length) throw new ChainError('its message with certificates is malformed')
  at -= list.length
  while (at < message.length) {
    yield take(3)
    if (isTls13) take(2)
  }
}

function addCosts(costs: Costs, certificate: Uint8Array): void {
  const body = new DerReader(certificate).enter(DerTag.SEQUENCE).enter(DerTag.SEQUENCE)
  if (body.nextTag === DerTag.CONTEXT_0) body.next()
  body.next(DerTag.INTEGER)
  body.next(DerTag.SEQUENCE)
  // The issuer and the validity.
  body.next(DerTag.SEQUENCE)
  body.next(DerTag.SEQUENCE)
  costs.names += countChildrenOf(body.enter(DerTag.SEQUENCE))
  costs.certificates += countOfKey(body.enter(DerTag.SEQUENCE))
  while (body.nextTag !== undefined)
    if (body.nextTag === DerTag.CONTEXT_3)
      addExtensions(costs, body.enter(DerTag.CONTEXT_3).enter(DerTag.SEQUENCE))
    else body.next()
}

/** Returns the certificates for which one counts, by its SubjectPublicKeyInfo. Throws for a key whose signatures take long. */
function countOfKey(info: DerReader): number {
  const algorithm = info.enter(DerTag.SEQUENCE)
  const kind = hexOf(algorithm, algorithm.next(DerTag.OBJECT_IDENTIFIER))
  const { start, end } = info.next(DerTag.BIT_STRING)
  // Behind the number of unused bits.
  const key = { start: start + 1, end }
  if (EDWARDS_KEYS.has(kind)) return 1
  if (RSA_KEYS.has(kind) && isShortRsaKey(new DerReader(info.bytes, key))) return 1
  if (kind === ELLIPTIC_KEY && algorithm.nextTag === DerTag.OBJECT_IDENTIFIER) {
    const curve = CURVES.get(hexOf(algorithm, algorithm.next()))
    if (curve?.pointBytes === end - key.start && info.bytes[key.start] === UNCOMPRESSED) return curve.count
  }
  throw new ChainError(
    `it has shown a certificate with another key than the server verifies: ${ALLOWED_KEYS}`,
  )
}

function isShortRsaKey(bits: DerReader): boolean {
  const key = bits.enter(DerTag.SEQUENCE)
  return isShortNumber(key, MAX_RSA_BITS) && isShortNumber(key, MAX_EXPONENT_BITS)
}

/** Returns whether the next value is a number of so many bits, which are whole bytes. */
function isShortNumber(key: DerReader, bits: number): boolean {
  const { start, end } = key.next(DerTag.INTEGER)
  // A byte of zeros keeps one positive whose first bit is set.
  return end - start - (key.bytes[start] === 0 ? 1 : 0) <= bits / 8
}

function addExtensions(costs: Costs, extensions: DerReader): void {
  while (!extensions.isAtEnd) {
    const extension = extensions.enter(DerTag.SEQUENCE)
    const kind = hexOf(extension, extension.next(DerTag.OBJECT_IDENTIFIER))
    if (kind !== ALTERNATIVE_NAMES && kind !== NAME_CONSTRAINTS) continue
    if (extension.nextTag !== DerTag.OCTET_STRING) extension.next()
    const value = extension.enter(DerTag.OCTET_STRING).enter(DerTag.SEQUENCE)
    if (kind === ALTERNATIVE_NAMES) costs.names += countNames(value)
    else costs.constraints += countChildrenOf(value)
  }
}

function countNames(names: DerReader): number {
  let count = 0
  while (!names.isAtEnd) {
    // Its tag is that of the first context.
    count += names.nextTag === DerTag.CONTEXT_0 ? COUNT_OF_OTHER_NAME : 1
    names.next()
  }
  return count
}

/** Returns the number of values that are left. */
function countOf(values: DerReader): number {
  let count = 0
  for (; !values.isAtEnd; count++) values.next()
  return count
}

/** Returns the number of values inside those that are left. */
function countChildrenOf(values: DerReader): number {
  let count = 0
  while (!values.isAtEnd) count += countOf(new DerReader(values.bytes, values.next()))
  return count
}

const hexOf = ({ bytes }: DerReader, { start, end }: DerValue): string =>
  Buffer.from(bytes.subarray(start, end)).toString('hex')
