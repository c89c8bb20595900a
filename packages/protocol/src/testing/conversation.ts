/**
 * Decodes frames into named records and encodes them again, for fixtures. The records of a frame depend on its sender and on the
 * request. Bigints are text with an n, bytes are hexadecimal digits.
 */
import * as protocol from '../index.ts'
import { OpCode, ProtocolError, Reader, Writer } from '../index.ts'

export interface Part {
  readonly record: string
  readonly value: unknown
}

export interface Frame {
  readonly from: 'client' | 'server'
  /** The bytes, with the length of four bytes. */
  readonly hex: string
  readonly parts: readonly Part[]
  /** False when Apache encodes text in another way than `Writer`, such as characters of four bytes. */
  readonly canonical?: false
}

export interface Fixture {
  readonly id: string
  readonly title: string
  readonly server: string
  readonly client: string
  /** The command that produced the bytes. */
  readonly command: string
  /** Whether the frames are the first two of a connection. */
  readonly handshake: boolean
  readonly frames: readonly Frame[]
}

const requests: Readonly<Record<number, string>> = {
  [OpCode.create]: 'CreateRequest',
  [OpCode.create2]: 'CreateRequest',
  [OpCode.createContainer]: 'CreateRequest',
  [OpCode.createTTL]: 'CreateTTLRequest',
  [OpCode.delete]: 'DeleteRequest',
  [OpCode.exists]: 'ExistsRequest',
  [OpCode.getData]: 'GetDataRequest',
  [OpCode.setData]: 'SetDataRequest',
  [OpCode.getACL]: 'GetACLRequest',
  [OpCode.setACL]: 'SetACLRequest',
  [OpCode.getChildren]: 'GetChildrenRequest',
  [OpCode.getChildren2]: 'GetChildren2Request',
  [OpCode.sync]: 'SyncRequest',
  [OpCode.check]: 'CheckVersionRequest',
  [OpCode.multi]: 'MultiRequest',
  [OpCode.multiRead]: 'MultiRequest',
  [OpCode.reconfig]: 'ReconfigRequest',
  [OpCode.checkWatches]: 'CheckWatchesRequest',
  [OpCode.removeWatches]: 'RemoveWatchesRequest',
  [OpCode.auth]: 'AuthPacket',
  [OpCode.setWatches]: 'SetWatches',
  [OpCode.setWatches2]: 'SetWatches2',
  [OpCode.sasl]: 'GetSASLRequest',
  [OpCode.getEphemerals]: 'GetEphemeralsRequest',
  [OpCode.getAllChildrenNumber]: 'GetAllChildrenNumberRequest',
  [OpCode.addWatch]: 'AddWatchRequest',
}

const responses: Readonly<Record<number, string>> = {
  [OpCode.create]: 'CreateResponse',
  [OpCode.create2]: 'Create2Response',
  [OpCode.createContainer]: 'Create2Response',
  [OpCode.createTTL]: 'Create2Response',
  [OpCode.exists]: 'ExistsResponse',
  [OpCode.getData]: 'GetDataResponse',
  [OpCode.setData]: 'SetDataResponse',
  [OpCode.getACL]: 'GetACLResponse',
  [OpCode.setACL]: 'SetACLResponse',
  [OpCode.getChildren]: 'GetChildrenResponse',
  [OpCode.getChildren2]: 'GetChildren2Response',
  [OpCode.sync]: 'SyncResponse',
  [OpCode.multi]: 'MultiResponse',
  [OpCode.multiRead]: 'MultiResponse',
  [OpCode.reconfig]: 'GetDataResponse',
  [OpCode.sasl]: 'SetSASLResponse',
  [OpCode.getEphemerals]: 'GetEphemeralsResponse',
  [OpCode.getAllChildrenNumber]: 'GetAllChildrenNumberResponse',
  [OpCode.addWatch]: 'ErrorResponse',
  [OpCode.whoAmI]: 'WhoAmIResponse',
}

const codecs = protocol as unknown as Record<string, ((...args: unknown[]) => unknown) | undefined>

export function readRecord(name: string, reader: Reader): unknown {
  return codecs[`read${name}`]!(reader)
}

export function writeRecord(name: string, writer: Writer, value: unknown): void {
  codecs[`write${name}`]!(writer, value)
}

/** Decodes the frames of one connection. */
export class Conversation {
  readonly #requestTypes = new Map<number, number>()

  /** Returns the records of a frame with its length. Bytes that belong to no record are a part named `rest`. */
  decode(from: 'client' | 'server', bytes: Uint8Array, handshake: boolean): Part[] {
    const reader = new Reader(bytes)
    const length = reader.int()
    if (length !== reader.remaining) throw new ProtocolError('Expected a whole frame', 0, 'a frame length')
    const parts: Part[] = []
    const take = (record: string): void => void parts.push({ record, value: readRecord(record, reader) })
    if (handshake && from === 'client') take('ConnectRequest')
    else if (handshake && length !== 16) take('ConnectResponse')
    else if (from === 'client') this.#request(reader, take, parts)
    else this.#response(reader, take, parts)
    if (reader.remaining > 0) parts.push({ record: 'rest', value: reader.raw(reader.remaining) })
    return parts
  }

  #request(reader: Reader, take: (record: string) => void, parts: Part[]): void {
    take('RequestHeader')
    const { xid, type } = parts[0]!.value as protocol.RequestHeader
    this.#requestTypes.set(xid, type)
    const record = requests[type]
    if (record !== undefined && reader.remaining > 0) attempt(reader, () => take(record))
  }

  #response(reader: Reader, take: (record: string) => void, parts: Part[]): void {
    take('ReplyHeader')
    if (reader.remaining === 0) return
    const { xid } = parts[0]!.value as protocol.ReplyHeader
    const record = xid === -1 ? 'WatcherEvent' : responses[this.#requestTypes.get(xid) ?? 0]
    if (record !== undefined) attempt(reader, () => take(record))
  }
}

/** Does not advance the reader when the bytes are not the record: fixtures contain malformed requests too. */
function attempt(reader: Reader, take: () => void): void {
  const before = reader.offset
  try {
    take()
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    reader.offset = before
  }
}

/** Encodes the parts as a frame with its length. */
export function encode(parts: readonly Part[]): Uint8Array {
  const writer = new Writer()
  const mark = writer.beginFrame()
  for (const { record, value } of parts) {
    if (record === 'rest') writer.raw(value as Uint8Array)
    else writeRecord(record, writer, value)
  }
  writer.endFrame(mark)
  return writer.take()
}

export const toHex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

export function fromHex(hex: string): Uint8Array {
  const digits = hex.replaceAll(/\s/g, '')
  return Uint8Array.from({ length: digits.length / 2 }, (_, i) =>
    Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16),
  )
}

/** Returns a value as JSON. */
export function toJson(value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`
  if (value instanceof Uint8Array) return { hex: toHex(value) }
  if (Array.isArray(value)) return value.map(toJson)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toJson(item)]))
}

/** Returns the value of a result of `toJson`. */
export function fromJson(json: unknown): unknown {
  if (typeof json === 'string') return /^-?\d+n$/.test(json) ? BigInt(json.slice(0, -1)) : json
  if (Array.isArray(json)) return json.map(fromJson)
  if (typeof json !== 'object' || json === null) return json
  const entries = Object.entries(json)
  if (entries.length === 1 && entries[0]![0] === 'hex') return fromHex(String(entries[0]![1]))
  return Object.fromEntries(entries.map(([key, item]) => [key, fromJson(item)]))
}

/** Returns a frame of a fixture with its decoded form. */
export function describeFrame(
  conversation: Conversation,
  from: 'client' | 'server',
  hex: string,
  handshake: boolean,
): Frame {
  const parts = conversation.decode(from, fromHex(hex), handshake)
  const frame = { from, hex, parts: toJson(parts) as Part[] }
  return toHex(encode(parts)) === hex ? frame : { ...frame, canonical: false }
}
