import { createDecipheriv, createHmac, type CipherCCMTypes } from 'node:crypto'
import { invariant } from '../invariant.ts'

export const RECORD_HEADER_BYTES = 5

/** The ciphers of TLS 1.3 (RFC 8446, B.4). */
interface Suite {
  readonly cipher: string
  readonly hash: 'sha256' | 'sha384'
  readonly keyBytes: number
  readonly tagBytes: number
}
const SUITES: ReadonlyMap<string, Suite> = new Map([
  ['TLS_AES_128_GCM_SHA256', { cipher: 'aes-128-gcm', hash: 'sha256', keyBytes: 16, tagBytes: 16 }],
  ['TLS_AES_256_GCM_SHA384', { cipher: 'aes-256-gcm', hash: 'sha384', keyBytes: 32, tagBytes: 16 }],
  [
    'TLS_CHACHA20_POLY1305_SHA256',
    { cipher: 'chacha20-poly1305', hash: 'sha256', keyBytes: 32, tagBytes: 16 },
  ],
  ['TLS_AES_128_CCM_SHA256', { cipher: 'aes-128-ccm', hash: 'sha256', keyBytes: 16, tagBytes: 16 }],
  ['TLS_AES_128_CCM_8_SHA256', { cipher: 'aes-128-ccm', hash: 'sha256', keyBytes: 16, tagBytes: 8 }],
])
const IV_BYTES = 12

/** What is inside an encrypted record. */
export interface OpenedRecord {
  readonly type: number
  readonly content: Uint8Array
}

/** Decrypts the records that a client sends under one secret of TLS 1.3, in their order. */
export class RecordOpener {
  readonly #suite: Suite
  readonly #key: Buffer
  readonly #iv: Buffer
  #number = 0

  /** `suite` is the name of a cipher suite of TLS 1.3 in the RFCs. */
  constructor(suite: string, secret: Uint8Array) {
    const known = SUITES.get(suite)
    invariant(known !== undefined, `a cipher suite of TLS 1.3, not ${suite}`)
    this.#suite = known
    this.#key = expand(known.hash, secret, 'key', known.keyBytes)
    this.#iv = expand(known.hash, secret, 'iv', IV_BYTES)
  }

  /** Returns what is inside the next record; undefined if it was not encrypted with the secret. */
  open(record: Uint8Array): OpenedRecord | undefined {
    const { cipher, tagBytes } = this.#suite
    const tagAt = record.length - tagBytes
    if (tagAt < RECORD_HEADER_BYTES) return undefined
    // All ciphers have the interface of this kind, which also needs the length of the plaintext.
    const decipher = createDecipheriv(cipher as CipherCCMTypes, this.#key, this.#nextNonce(), {
      authTagLength: tagBytes,
    })
    decipher.setAuthTag(record.subarray(tagAt))
    decipher.setAAD(record.subarray(0, RECORD_HEADER_BYTES) as Buffer, {
      plaintextLength: tagAt - RECORD_HEADER_BYTES,
    })
    let content: Buffer
    try {
      content = decipher.update(record.subarray(RECORD_HEADER_BYTES, tagAt))
      decipher.final()
    } catch {
      return undefined
    }
    // Zeros may follow the type.
    let end = content.length - 1
    while (end >= 0 && content[end] === 0) end--
    return end < 0 ? undefined : { type: content[end]!, content: content.subarray(0, end) }
  }

  #nextNonce(): Buffer {
    const nonce = Buffer.from(this.#iv)
    const low = IV_BYTES - 4
    nonce.writeUInt32BE((nonce.readUInt32BE(low) ^ this.#number++) >>> 0, low)
    return nonce
  }
}

/** Derives a key of at most the length of the hash (HKDF-Expand-Label of RFC 8446, 7.1). */
function expand(hash: string, secret: Uint8Array, purpose: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${purpose}`)
  const info = Buffer.concat([Buffer.of(0, length, label.length), label, Buffer.of(0, 1)])
  return createHmac(hash, secret).update(info).digest().subarray(0, length)
}
