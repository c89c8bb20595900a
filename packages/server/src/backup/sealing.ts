import { hmacSha256 } from '@zabra/protocol'
import type { Cryptography, DiskReader, Random } from '@zabra/runtime'
import { BackupError, BackupUsageError } from './errors.ts'
import { hex } from './target.ts'

/** "ZBKS", the format, the id of the key, the salt of the file. */
const MAGIC = 0x5a424b53
const FORMAT = 1
const KEY_ID_BYTES = 8
const SALT_BYTES = 16
export const HEAD_BYTES = 8 + KEY_ID_BYTES + SALT_BYTES
const PLAIN_BYTES = 1 << 16
const TAG_BYTES = 16
const SEALED_BYTES = PLAIN_BYTES + TAG_BYTES
const KEY_BYTES = 32

/** A key of 256 bits with which backups are encrypted. */
export interface BackupKey {
  /** Names the key without giving it away. */
  readonly id: string
  readonly bytes: Uint8Array
  /** Those that open what was encrypted before this one. */
  readonly earlier?: readonly BackupKey[]
}

/**
 * Reads the text of a key file: 64 hexadecimal digits, and in further lines those of earlier keys. Throws a `BackupError` that repeats
 * nothing of it.
 */
export function parseKey(text: string, cryptography: Cryptography, file: string): BackupKey {
  const [key, ...earlier] = keysIn(text, file).map((bytes): BackupKey => {
    const hash = cryptography.sha256()
    hash.update(new TextEncoder().encode('zabra backup key'))
    hash.update(bytes)
    return { id: hash.digest().slice(0, KEY_ID_BYTES * 2), bytes }
  })
  return { ...key!, earlier }
}

/** Returns the bytes of the key. Throws as `parseKey` does. */
export function parseKeyBytes(text: string, file: string): Uint8Array {
  return keysIn(text, file)[0]!
}

/** Returns the bytes of all keys of a file, of which there is at least one. */
function keysIn(text: string, file: string): Uint8Array[] {
  return text
    .trim()
    .split(/\s*\n\s*/)
    .map((digits) => {
      if (!/^[\da-f]{64}$/i.test(digits))
        throw new BackupUsageError(
          `Expected 64 hexadecimal digits in each line of the key file ${file}, got something else. Make a key with: openssl rand -hex 32`,
        )
      return Uint8Array.from({ length: KEY_BYTES }, (_, index) =>
        Number.parseInt(digits.slice(index * 2, index * 2 + 2), 16),
      )
    })
}

/**
 * Encrypts a file. Each chunk of 64 KiB is sealed under a key of the file, with its index and whether it is the last, so that chunks
 * cannot be dropped, repeated or exchanged. `name` is authenticated too: a file does not open under the name of another.
 */
export async function* seal(
  chunks: AsyncIterable<Uint8Array>,
  key: BackupKey,
  name: string,
  { cryptography, random }: { readonly cryptography: Cryptography; readonly random: Random },
): AsyncGenerator<Uint8Array> {
  const head = new Uint8Array(HEAD_BYTES)
  const view = new DataView(head.buffer)
  view.setUint32(0, MAGIC)
  view.setUint32(4, FORMAT)
  head.set(fromHex(key.id), 8)
  head.set(random.bytes(SALT_BYTES), 8 + KEY_ID_BYTES)
  yield head
  const fileKey = keyOfFile(key, head)
  const associated = new TextEncoder().encode(name)
  const pending = new Uint8Array(PLAIN_BYTES)
  let length = 0
  let index = 0
  for await (const chunk of chunks)
    for (let at = 0; at < chunk.length;) {
      // A full chunk is sealed once another byte follows: only then it is not the last.
      if (length === PLAIN_BYTES) {
        yield cryptography.seal(fileKey, nonceOf(index++, false), associated, pending)
        length = 0
      }
      const part = chunk.subarray(at, at + PLAIN_BYTES - length)
      pending.set(part, length)
      length += part.length
      at += part.length
    }
  yield cryptography.seal(fileKey, nonceOf(index, true), associated, pending.subarray(0, length))
}

/** Reads a sealed file at any position. Rejects with a `BackupError` where a chunk was changed. */
export class SealedReader implements DiskReader {
  readonly #file: DiskReader
  readonly #name: string
  readonly #cryptography: Cryptography
  readonly #key: Uint8Array
  readonly #associated: Uint8Array
  readonly #chunks: number
  readonly #size: number
  /** The chunk that was opened last. */
  #open: { readonly index: number; readonly plain: Uint8Array } | undefined

  private constructor(
    file: DiskReader,
    name: string,
    cryptography: Cryptography,
    key: Uint8Array,
    size: number,
  ) {
    this.#file = file
    this.#name = name
    this.#cryptography = cryptography
    this.#key = key
    this.#associated = new TextEncoder().encode(name)
    const sealed = size - HEAD_BYTES
    this.#chunks = Math.ceil(sealed / SEALED_BYTES)
    this.#size = sealed - this.#chunks * TAG_BYTES
  }

  /** Reads the head of a file. Rejects with a `BackupError` when it is sealed with another key, or is no sealed file. */
  static async open(
    file: DiskReader,
    name: string,
    key: BackupKey,
    cryptography: Cryptography,
  ): Promise<SealedReader> {
    const head = new Uint8Array(HEAD_BYTES)
    const size = await file.size()
    await file.read(head, 0)
    const view = new DataView(head.buffer)
    if (size < HEAD_BYTES + TAG_BYTES || view.getUint32(0) !== MAGIC || view.getUint32(4) !== FORMAT)
      throw damaged(name, 'it is no encrypted file')
    const id = hex(head.subarray(8, 8 + KEY_ID_BYTES))
    if (id !== key.id)
      throw new BackupError(
        `${name} is encrypted with the key ${id}, got the key ${key.id}. Name the file of that key with --key-file.`,
      )
    return new SealedReader(file, name, cryptography, keyOfFile(key, head), size)
  }

  async size(): Promise<number> {
    return this.#size
  }

  async read(into: Uint8Array, position: number): Promise<number> {
    let done = 0
    while (done < into.length && position + done < this.#size) {
      const at = position + done
      const index = Math.floor(at / PLAIN_BYTES)
      const plain = await this.#chunk(index)
      const part = plain.subarray(at - index * PLAIN_BYTES).subarray(0, into.length - done)
      if (part.length === 0) break
      into.set(part, done)
      done += part.length
    }
    return done
  }

  close(): Promise<void> {
    return this.#file.close()
  }

  async #chunk(index: number): Promise<Uint8Array> {
    if (this.#open?.index === index) return this.#open.plain
    const sealed = new Uint8Array(SEALED_BYTES)
    const length = await this.#file.read(sealed, HEAD_BYTES + index * SEALED_BYTES)
    const nonce = nonceOf(index, index === this.#chunks - 1)
    const plain = this.#cryptography.open(this.#key, nonce, this.#associated, sealed.subarray(0, length))
    if (plain === undefined) throw damaged(this.#name, `its chunk ${index} was changed`)
    this.#open = { index, plain }
    return plain
  }
}

const damaged = (name: string, what: string): BackupError =>
  new BackupError(`${name} is damaged: ${what}. Use another backup; zabra backup verify checks them all.`)

/** Returns the key of one file. A nonce is used once under it, however many files the key of the backups has. */
const keyOfFile = (key: BackupKey, head: Uint8Array): Uint8Array => hmacSha256(key.bytes, head)

function nonceOf(index: number, isLast: boolean): Uint8Array {
  const nonce = new Uint8Array(12)
  const view = new DataView(nonce.buffer)
  view.setUint32(0, isLast ? 1 : 0)
  view.setBigUint64(4, BigInt(index))
  return nonce
}

const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
