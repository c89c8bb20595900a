import { createDecipheriv, createHash, createHmac, pbkdf2Sync, timingSafeEqual } from 'node:crypto'
import { elements, integerOf, oidOf, readDer, Tag, type Der } from '../x509/der.ts'

/** What a PKCS #12 file holds, in DER: certificates, and private keys as PKCS #8, still locked with the password. */
export interface Pkcs12 {
  readonly certificates: readonly Uint8Array[]
  readonly keys: readonly Uint8Array[]
}

/** A PKCS #12 file that cannot be read. The message completes "cannot be used: …". */
export class Pkcs12Error extends Error {
  override readonly name = 'Pkcs12Error'
}

const Oid = {
  data: '1.2.840.113549.1.7.1',
  encrypted: '1.2.840.113549.1.7.6',
  keyBag: '1.2.840.113549.1.12.10.1.1',
  shroudedKeyBag: '1.2.840.113549.1.12.10.1.2',
  certificateBag: '1.2.840.113549.1.12.10.1.3',
  x509: '1.2.840.113549.1.9.22.1',
  pbes2: '1.2.840.113549.1.5.13',
  pbkdf2: '1.2.840.113549.1.5.12',
} as const

const hashes: Readonly<Record<string, string>> = {
  '1.3.14.3.2.26': 'sha1',
  '2.16.840.1.101.3.4.2.4': 'sha224',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
  '1.2.840.113549.2.7': 'sha1',
  '1.2.840.113549.2.8': 'sha224',
  '1.2.840.113549.2.9': 'sha256',
  '1.2.840.113549.2.10': 'sha384',
  '1.2.840.113549.2.11': 'sha512',
}

const ciphers: Readonly<Record<string, { readonly name: string; readonly keyBytes: number }>> = {
  '2.16.840.1.101.3.4.1.2': { name: 'aes-128-cbc', keyBytes: 16 },
  '2.16.840.1.101.3.4.1.22': { name: 'aes-192-cbc', keyBytes: 24 },
  '2.16.840.1.101.3.4.1.42': { name: 'aes-256-cbc', keyBytes: 32 },
  '1.2.840.113549.3.7': { name: 'des-ede3-cbc', keyBytes: 24 },
}

const TRIPLE_DES = '1.2.840.113549.1.12.1.3'
/** Rounds of a key derivation that are gone through; more would only keep the process busy. */
const MOST_ROUNDS = 10_000_000

/**
 * Reads a PKCS #12 file. What OpenSSL and Java write today is understood (PBES2 with AES), and what they wrote with triple
 * DES; RC2 is refused. Throws a `Pkcs12Error`.
 */
export function readPkcs12(bytes: Uint8Array, password: string): Pkcs12 {
  try {
    return contents(bytes, password)
  } catch (error) {
    if (error instanceof Pkcs12Error) throw error
    throw new Pkcs12Error('it is damaged, or no PKCS #12 file', { cause: error })
  }
}

function contents(bytes: Uint8Array, password: string): Pkcs12 {
  const [, safe, mac] = elements(readDer(bytes))
  const [type, wrapped] = elements(safe!)
  if (oidOf(type!) !== Oid.data)
    throw new Pkcs12Error('it is protected by a public key instead of a password')
  const inner = elements(wrapped!)[0]!.content
  if (mac !== undefined && !isIntact(mac, inner, password))
    throw new Pkcs12Error('the password is wrong, or the file is damaged')
  const certificates: Uint8Array[] = []
  const keys: Uint8Array[] = []
  for (const part of elements(readDer(inner))) {
    for (const bag of elements(readDer(opened(part, password)))) {
      const [kind, value] = elements(bag)
      const [first] = elements(value!)
      switch (oidOf(kind!)) {
        case Oid.keyBag:
        case Oid.shroudedKeyBag:
          keys.push(first!.whole)
          break
        case Oid.certificateBag: {
          const [format, holder] = elements(first!)
          if (oidOf(format!) === Oid.x509) certificates.push(elements(holder!)[0]!.content)
        }
      }
    }
  }
  return { certificates, keys }
}

/** The bytes of one part of the file, in clear. */
function opened(part: Der, password: string): Uint8Array {
  const [type, wrapped] = elements(part)
  const [content] = elements(wrapped!)
  if (oidOf(type!) === Oid.data) return content!.content
  if (oidOf(type!) !== Oid.encrypted)
    throw new Pkcs12Error('a part of it is locked in a way that is not known')
  const [, info] = elements(content!)
  const [, algorithm, locked] = elements(info!)
  return decrypted(algorithm!, locked!.content, password)
}

function decrypted(algorithm: Der, locked: Uint8Array, password: string): Uint8Array {
  const [type, parameters] = elements(algorithm)
  const { name, key, iv } =
    oidOf(type!) === Oid.pbes2
      ? modernKey(parameters!, password)
      : oldKey(oidOf(type!), parameters!, password)
  const decipher = createDecipheriv(name, key, iv)
  try {
    return Buffer.concat([decipher.update(locked), decipher.final()])
  } catch (error) {
    throw new Pkcs12Error('the password is wrong, or the file is damaged', { cause: error })
  }
}

interface Unlocking {
  readonly name: string
  readonly key: Uint8Array
  readonly iv: Uint8Array
}

function modernKey(parameters: Der, password: string): Unlocking {
  const [derivation, scheme] = elements(parameters)
  const [function_, settings] = elements(derivation!)
  if (oidOf(function_!) !== Oid.pbkdf2) throw unknownCipher()
  const [salt, count, ...rest] = elements(settings!)
  const prf = rest.find(({ tag }) => tag === Tag.sequence)
  const hash = prf === undefined ? 'sha1' : hashes[oidOf(elements(prf)[0]!)]
  const [oid, iv] = elements(scheme!)
  const cipher = ciphers[oidOf(oid!)]
  if (hash === undefined || cipher === undefined) throw unknownCipher()
  const key = pbkdf2Sync(password, salt!.content, rounds(count!), cipher.keyBytes, hash)
  return { name: cipher.name, key, iv: iv!.content }
}

function oldKey(oid: string, parameters: Der, password: string): Unlocking {
  if (oid !== TRIPLE_DES) throw unknownCipher()
  const [salt, count] = elements(parameters)
  const derive = (purpose: number, length: number): Uint8Array =>
    derived('sha1', password, salt!.content, rounds(count!), purpose, length)
  return { name: 'des-ede3-cbc', key: derive(1, 24), iv: derive(2, 8) }
}

const unknownCipher = (): Pkcs12Error =>
  new Pkcs12Error('it is locked with a cipher that is no longer supported, such as RC2')

function rounds(count: Der): number {
  const value = integerOf(count)
  if (value > MOST_ROUNDS) throw new Pkcs12Error(`it asks for ${value} rounds of key derivation`)
  return value
}

function isIntact(mac: Der, content: Uint8Array, password: string): boolean {
  const [digest, salt, count] = elements(mac)
  const [algorithm, expected] = elements(digest!)
  const hash = hashes[oidOf(elements(algorithm!)[0]!)]
  if (hash === undefined) throw new Pkcs12Error('its checksum is of a kind that is not known')
  const length = createHash(hash).digest().length
  const key = derived(hash, password, salt!.content, count === undefined ? 1 : rounds(count), 3, length)
  const found = createHmac(hash, key).update(content).digest()
  return found.length === expected!.content.length && timingSafeEqual(found, expected!.content)
}

/** The key derivation of PKCS #12 itself (RFC 7292, appendix B.2), for an older cipher or the checksum. */
function derived(
  hash: string,
  password: string,
  salt: Uint8Array,
  count: number,
  purpose: number,
  length: number,
): Uint8Array {
  const block = hash === 'sha384' || hash === 'sha512' ? 128 : 64
  const secret = Buffer.from(`${password}\0`, 'utf16le').swap16()
  const input = Buffer.concat([filled(salt, block), filled(secret, block)])
  const parts: Uint8Array[] = []
  for (let have = 0; have < length;) {
    let digest: Buffer = createHash(hash).update(Buffer.alloc(block, purpose)).update(input).digest()
    for (let round = 1; round < count; round++) digest = createHash(hash).update(digest).digest()
    parts.push(digest)
    have += digest.length
    addToEach(input, filled(digest, block).subarray(0, block), block)
  }
  return Buffer.concat(parts).subarray(0, length)
}

/** `bytes` repeated up to a multiple of `block`. */
function filled(bytes: Uint8Array, block: number): Buffer {
  const length = Math.ceil(bytes.length / block) * block
  return Buffer.from(Array.from({ length }, (_, i) => bytes[i % bytes.length]!))
}

/** Adds a number and one to each block, modulo its size. */
function addToEach(blocks: Buffer, number: Uint8Array, block: number): void {
  for (let start = 0; start < blocks.length; start += block) {
    let carry = 1
    for (let i = block - 1; i >= 0; i--) {
      const sum = blocks[start + i]! + number[i]! + carry
      blocks[start + i] = sum
      carry = sum >> 8
    }
  }
}
