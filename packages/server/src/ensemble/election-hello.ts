import { ProtocolError, Reader, readText, textByteLength, Writer, writeText } from '@zabra/protocol'
import type { Address } from '@zabra/runtime'
import type { ServerId } from '../core/quorum/index.ts'

/** The first message of a server on the election port (quorum-protocol 3.2). */
export interface Hello {
  readonly id: ServerId
  /** The addresses at which the server can be called back; empty when it announced none, or only wildcard addresses. */
  readonly addresses: readonly Address[]
}

/** A hello, and the bytes that followed it. */
export interface ReceivedHello {
  readonly hello: Hello
  readonly rest: Uint8Array
}

/** The protocol versions of a hello with one address and with several. */
const ONE_ADDRESS = -65_536n
const SEVERAL_ADDRESSES = -65_535n
/** The id that an observer without an id sends. */
const ANONYMOUS = 2n ** 63n - 1n
const HEAD_BYTES = 20
const MAX_TEXT_BYTES = 2048

/**
 * Returns the bytes of a hello, which must be sent in one write: an Apache server reads the address with a single call and rejects
 * a short read. `several` announces all addresses, which servers before 3.6 do not understand.
 */
export function encodeHello(id: ServerId, addresses: readonly Address[], several: boolean): Uint8Array {
  const text = (several ? addresses : addresses.slice(0, 1)).map(formatAddress).join('|')
  const writer = new Writer(HEAD_BYTES + textByteLength(text))
  writer.long(several ? SEVERAL_ADDRESSES : ONE_ADDRESS)
  writer.longNumber(id)
  const bytes = new Uint8Array(textByteLength(text))
  writeText(text, bytes, 0)
  writer.buffer(bytes)
  return writer.take()
}

/** Reads a hello, which may arrive in pieces. */
export class HelloReader {
  #bytes: Uint8Array = new Uint8Array(0)

  get received(): number {
    return this.#bytes.length
  }

  /** Takes bytes; returns the hello once it is complete, with the bytes after it. Throws a `ProtocolError`. */
  push(chunk: Uint8Array): ReceivedHello | undefined {
    const bytes = new Uint8Array(this.#bytes.length + chunk.length)
    bytes.set(this.#bytes)
    bytes.set(chunk, this.#bytes.length)
    this.#bytes = bytes
    const reader = new Reader(bytes)
    if (reader.remaining < 8) return undefined
    const first = reader.long()
    // Before 3.5 a hello was the id alone.
    if (first >= 0n) return { hello: { id: idOf(first), addresses: [] }, rest: bytes.subarray(8) }
    if (first !== ONE_ADDRESS && first !== SEVERAL_ADDRESSES)
      reader.fail(`Expected the protocol ${ONE_ADDRESS} or ${SEVERAL_ADDRESSES}, got ${first}`, 'a hello')
    return this.#readRest(reader)
  }

  #readRest(reader: Reader): ReceivedHello | undefined {
    if (reader.remaining < HEAD_BYTES - 8) return undefined
    const id = idOf(reader.long())
    const length = reader.int()
    if (length < 1 || length > MAX_TEXT_BYTES)
      reader.fail(`Expected an address of 1 to ${MAX_TEXT_BYTES} bytes, got a length of ${length}`, 'a hello')
    if (reader.remaining < length) return undefined
    const text = reader.raw(length)
    const addresses = parseAddresses(readText(text, 0, text.length))
    return { hello: { id, addresses }, rest: this.#bytes.subarray(reader.offset) }
  }
}

function idOf(long: bigint): ServerId {
  const id = Number(long)
  if (Number.isSafeInteger(id) && id >= 0) return id
  const sender = long === ANONYMOUS ? 'an observer without an id' : String(long)
  throw new ProtocolError(`Expected the id of a server, got ${sender}`, 0, 'a hello')
}

function parseAddresses(text: string): Address[] {
  return text.split('|').flatMap((part) => {
    const [, bracketed, bare, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(part.trim()) ?? []
    if (port === undefined || Number(port) < 1 || Number(port) > 65_535)
      throw new ProtocolError(
        `Expected host:port, got ${JSON.stringify(part.slice(0, 80))}`,
        HEAD_BYTES,
        'a hello',
      )
    const host = (bracketed ?? bare)!
    return /^(0\.0\.0\.0|[0:]*)$/.test(host) ? [] : [{ host, port: Number(port) }]
  })
}

/** Returns an address in the form of hellos and log lines. */
export const formatAddress = ({ host, port }: Address): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
