/**
 * The library parses the file; OpenSSL, through `node:crypto`, does the cryptography. Loaded with the first PKCS #12 store.
 */
import { createDecipheriv, createHash, createHmac, pbkdf2Sync, timingSafeEqual } from 'node:crypto'
import { EncryptedContentInfo, id_data, id_encryptedData, type ContentInfo } from '@peculiar/asn1-cms'
import {
  AuthenticatedSafe,
  CertBag,
  id_certBag,
  id_keyBag,
  id_pbeWithSHAAnd3_KeyTripleDES_CBC,
  id_pkcs8ShroudedKeyBag,
  id_x509Certificate,
  PFX,
  SafeContents,
  type MacData,
} from '@peculiar/asn1-pfx'
import { AsnConvert, AsnProp, AsnPropTypes, OctetString } from '@peculiar/asn1-schema'
import { AlgorithmIdentifier } from '@peculiar/asn1-x509'

/** The contents of a PKCS #12 file, in DER: certificates, and private keys as PKCS #8, still encrypted with the password. */
export interface Pkcs12 {
  readonly certificates: readonly Uint8Array[]
  readonly keys: readonly Uint8Array[]
}

/** A PKCS #12 file that cannot be used. The message completes "cannot be used: …". */
export class Pkcs12Error extends Error {
  override readonly name = 'Pkcs12Error'
}

const id_pbes2 = '1.2.840.113549.1.5.13'
const id_pbkdf2 = '1.2.840.113549.1.5.12'

/** Digests, and pseudo-random functions of PBKDF2, by their object identifiers. */
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

/** Most iterations of a key derivation that are computed: a file that asks for more would block the process. */
const MAX_ITERATIONS = 10_000_000

// Structures that the library does not declare.

/** `EncryptedData` of RFC 5652, section 8. */
class EncryptedData {
  version = 0
  encryptedContentInfo = new EncryptedContentInfo()
}
AsnProp({ type: AsnPropTypes.Integer })(EncryptedData.prototype, 'version')
AsnProp({ type: EncryptedContentInfo })(EncryptedData.prototype, 'encryptedContentInfo')

/** `PBES2-params` of RFC 8018, appendix A.4. */
class Pbes2Parameters {
  keyDerivationFunction = new AlgorithmIdentifier()
  encryptionScheme = new AlgorithmIdentifier()
}
AsnProp({ type: AlgorithmIdentifier })(Pbes2Parameters.prototype, 'keyDerivationFunction')
AsnProp({ type: AlgorithmIdentifier })(Pbes2Parameters.prototype, 'encryptionScheme')

/** `PBKDF2-params` of RFC 8018, appendix A.2. */
class Pbkdf2Parameters {
  salt = new OctetString()
  iterationCount = 1
  keyLength: number | undefined
  prf: AlgorithmIdentifier | undefined
}
AsnProp({ type: OctetString })(Pbkdf2Parameters.prototype, 'salt')
AsnProp({ type: AsnPropTypes.Integer })(Pbkdf2Parameters.prototype, 'iterationCount')
AsnProp({ type: AsnPropTypes.Integer, optional: true })(Pbkdf2Parameters.prototype, 'keyLength')
AsnProp({ type: AlgorithmIdentifier, optional: true })(Pbkdf2Parameters.prototype, 'prf')

/** `pkcs-12PbeParams` of RFC 7292, appendix C. */
class Pkcs12PbeParameters {
  salt = new OctetString()
  iterations = 1
}
AsnProp({ type: OctetString })(Pkcs12PbeParameters.prototype, 'salt')
AsnProp({ type: AsnPropTypes.Integer })(Pkcs12PbeParameters.prototype, 'iterations')

/**
 * Reads a PKCS #12 file: what OpenSSL and Java write today (PBES2 with AES), and what they wrote with triple DES. RC2 is
 * refused. Throws a `Pkcs12Error`.
 */
export function readPkcs12(bytes: Uint8Array, password: string): Pkcs12 {
  try {
    return parse(bytes, password)
  } catch (error) {
    if (error instanceof Pkcs12Error) throw error
    throw new Pkcs12Error('it is damaged, or no PKCS #12 file', { cause: error })
  }
}

function parse(file: Uint8Array, password: string): Pkcs12 {
  const { authSafe, macData } = AsnConvert.parse(file, PFX)
  if (authSafe.contentType !== id_data)
    throw new Pkcs12Error('it is protected by a public key instead of a password')
  const content = AsnConvert.parse(authSafe.content, OctetString)
  // The library makes an empty MAC where the file has none.
  const hasMac = macData.mac.digest.byteLength > 0
  if (hasMac && !isIntact(macData, bytesOf(content), password))
    throw new Pkcs12Error('the password is wrong, or the file is damaged')
  const certificates: Uint8Array[] = []
  const keys: Uint8Array[] = []
  for (const part of AsnConvert.parse(content.buffer, AuthenticatedSafe)) {
    for (const { bagId, bagValue } of AsnConvert.parse(decryptPart(part, password), SafeContents)) {
      if (bagId === id_keyBag || bagId === id_pkcs8ShroudedKeyBag) keys.push(new Uint8Array(bagValue))
      if (bagId !== id_certBag) continue
      const { certId, certValue } = AsnConvert.parse(bagValue, CertBag)
      if (certId === id_x509Certificate) certificates.push(bytesOf(AsnConvert.parse(certValue, OctetString)))
    }
  }
  return { certificates, keys }
}

const bytesOf = ({ buffer }: OctetString): Uint8Array => new Uint8Array(buffer)

/** Returns the `SafeContents` of one part of the file in DER, decrypted where it is encrypted. */
function decryptPart({ contentType, content }: ContentInfo, password: string): Uint8Array {
  if (contentType === id_data) return bytesOf(AsnConvert.parse(content, OctetString))
  if (contentType !== id_encryptedData)
    throw new Pkcs12Error('a part of it is encrypted in a way that is not supported')
  const { encryptedContentInfo } = AsnConvert.parse(content, EncryptedData)
  const { contentEncryptionAlgorithm, encryptedContent } = encryptedContentInfo
  const { value, constructedValue = [] } = encryptedContent ?? {}
  const encrypted = value === undefined ? constructedValue : [value]
  return decrypt(contentEncryptionAlgorithm, Buffer.concat(encrypted.map(bytesOf)), password)
}

function decrypt(algorithm: AlgorithmIdentifier, encrypted: Uint8Array, password: string): Uint8Array {
  const { name, key, iv } =
    algorithm.algorithm === id_pbes2 ? pbes2Key(algorithm, password) : pkcs12Key(algorithm, password)
  const decipher = createDecipheriv(name, key, iv)
  try {
    return Buffer.concat([decipher.update(encrypted), decipher.final()])
  } catch (error) {
    throw new Pkcs12Error('the password is wrong, or the file is damaged', { cause: error })
  }
}

interface CipherKey {
  readonly name: string
  readonly key: Uint8Array
  readonly iv: Uint8Array
}

function pbes2Key(algorithm: AlgorithmIdentifier, password: string): CipherKey {
  const { keyDerivationFunction, encryptionScheme } = parametersOf(algorithm, Pbes2Parameters)
  const cipher = ciphers[encryptionScheme.algorithm]
  if (keyDerivationFunction.algorithm !== id_pbkdf2 || cipher === undefined) throw unknownCipher()
  const { salt, iterationCount, prf } = parametersOf(keyDerivationFunction, Pbkdf2Parameters)
  const hash = prf === undefined ? 'sha1' : hashes[prf.algorithm]
  if (hash === undefined) throw unknownCipher()
  const key = pbkdf2Sync(password, bytesOf(salt), checked(iterationCount), cipher.keyBytes, hash)
  return { name: cipher.name, key, iv: bytesOf(parametersOf(encryptionScheme, OctetString)) }
}

function pkcs12Key(algorithm: AlgorithmIdentifier, password: string): CipherKey {
  if (algorithm.algorithm !== id_pbeWithSHAAnd3_KeyTripleDES_CBC) throw unknownCipher()
  const { salt, iterations } = parametersOf(algorithm, Pkcs12PbeParameters)
  const derive = (purpose: number, length: number): Uint8Array =>
    deriveKey('sha1', password, bytesOf(salt), checked(iterations), purpose, length)
  return { name: 'des-ede3-cbc', key: derive(1, 24), iv: derive(2, 8) }
}

const parametersOf = <T>({ parameters }: AlgorithmIdentifier, type: new () => T): T =>
  AsnConvert.parse(parameters ?? new ArrayBuffer(0), type)

const unknownCipher = (): Pkcs12Error =>
  new Pkcs12Error('it is locked with a cipher that is no longer supported, such as RC2')

function checked(iterations: number): number {
  if (iterations > MAX_ITERATIONS)
    throw new Pkcs12Error(`it asks for ${iterations} iterations of key derivation`)
  return iterations
}

function isIntact({ mac, macSalt, iterations }: MacData, content: Uint8Array, password: string): boolean {
  const hash = hashes[mac.digestAlgorithm.algorithm]
  if (hash === undefined) throw new Pkcs12Error('its checksum is of a kind that is not supported')
  const length = createHash(hash).digest().length
  const key = deriveKey(hash, password, bytesOf(macSalt), checked(iterations), 3, length)
  const found = createHmac(hash, key).update(content).digest()
  const expected = bytesOf(mac.digest)
  return found.length === expected.length && timingSafeEqual(found, expected)
}

/**
 * The key derivation of PKCS #12 itself (RFC 7292, appendix B.2), which OpenSSL has and `node:crypto` does not offer. It makes
 * the key of the MAC in every file, and keys of triple DES in old ones. `purpose` is 1 for a key, 2 for an initialization
 * vector, 3 for a MAC.
 */
function deriveKey(
  hash: string,
  password: string,
  salt: Uint8Array,
  iterations: number,
  purpose: number,
  length: number,
): Uint8Array {
  const block = hash === 'sha384' || hash === 'sha512' ? 128 : 64
  const secret = Buffer.from(`${password}\0`, 'utf16le').swap16()
  const input = Buffer.concat([repeated(salt, block), repeated(secret, block)])
  const parts: Uint8Array[] = []
  for (let derived = 0; derived < length;) {
    let digest: Buffer = createHash(hash).update(Buffer.alloc(block, purpose)).update(input).digest()
    for (let i = 1; i < iterations; i++) digest = createHash(hash).update(digest).digest()
    parts.push(digest)
    derived += digest.length
    addToEach(input, repeated(digest, block).subarray(0, block), block)
  }
  return Buffer.concat(parts).subarray(0, length)
}

/** Repeats `bytes` up to a multiple of `block`. */
function repeated(bytes: Uint8Array, block: number): Buffer {
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
