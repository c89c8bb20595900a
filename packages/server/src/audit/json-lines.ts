import { jsonFields, type AuditClient, type AuditEvent, type PlainChange } from './audit-event.ts'
import type { AuditFile, LineBuffer } from './audit-file.ts'
import { LineHeads, PATH_MARK, writePath } from './line-heads.ts'
import type { RequestsInFlight } from './requests-in-flight.ts'
import { MAX_DIGITS, writeHex, writeInteger } from './write-number.ts'

const encoder = new TextEncoder()

const QUOTE = 0x22

const VERSION = encoder.encode(',"version":')
const VERSION_BEFORE = encoder.encode(',"versionBefore":')
const ZXID = encoder.encode(',"zxid":"0x')
const BYTES = encoder.encode(',"bytes":')
const REQUEST_ID = encoder.encode(',"requestId":')
const END = encoder.encode('}\n')
/** The most bytes of a line behind its path, without the create mode. */
const MAX_TAIL = 65 + 5 * MAX_DIGITS

/**
 * Adds events to a file as lines of JSON.
 *
 * Optimised: what the lines of a client and an operation have in common is copied as bytes, a path of ASCII follows as it stands in
 * the request, and numbers are written as digits. No string is made.
 * Why: an object of all fields and its `JSON.stringify` cost twenty times as much, text that is put together and encoded twice.
 * Rules: lines are those of `jsonFields`, with which `json-lines.test.ts` compares them.
 */
export class JsonLines {
  readonly #file: AuditFile
  readonly #serverId: number
  #time = NaN
  /** The beginning of a line with that time, up to its number. */
  #start: Uint8Array = new Uint8Array(0)
  /** From behind the number to the path. */
  readonly #heads: LineHeads
  readonly #modes = new Map<string, Uint8Array>()

  constructor(file: AuditFile, serverId: number) {
    this.#file = file
    this.#serverId = serverId
    this.#heads = new LineHeads((event) => this.#headOf(event))
  }

  /** Adds the line of an event. Returns false when it is lost. */
  add(event: AuditEvent, time: number, id: number): boolean {
    const isPlain =
      event.path !== undefined &&
      event.category === 'writes' &&
      event.result === 'success' &&
      event.error === undefined &&
      event.acl === undefined &&
      event.scheme === undefined &&
      event.detail === undefined &&
      event.lost === undefined
    if (isPlain) return this.addChange(event, event, event.path, time, id)
    return this.#file.append(JSON.stringify(jsonFields(event, { time, id, serverId: this.#serverId })))
  }

  /**
   * Adds the line of a change whose request is the first one in flight, so that its path is there as bytes. Returns false when it is
   * lost, undefined for a path that is not copied.
   */
  addFirst(
    client: AuditClient,
    change: PlainChange,
    requests: RequestsInFlight,
    time: number,
    id: number,
  ): boolean | undefined {
    const length = requests.plainLength
    if (length < 0) return undefined
    const head = this.#heads.of(client, change.operation)
    const buffer = this.#reserve(head, length, change.mode, time)
    if (buffer === undefined) return false
    const at = this.#begin(buffer, head, id)
    requests.copyPlain(buffer.view, at)
    this.#end(buffer, at + length, change)
    return true
  }

  /** Adds the line of a change. Returns false when it is lost. */
  addChange(client: AuditClient, change: PlainChange, path: string, time: number, id: number): boolean {
    const head = this.#heads.of(client, change.operation)
    const buffer = this.#reserve(head, path.length, change.mode, time)
    if (buffer === undefined) return false
    const end = writePath(path, buffer.bytes, this.#begin(buffer, head, id))
    if (end === -1) return this.#addEncoded(head, change, path, time, id)
    this.#end(buffer, end, change)
    return true
  }

  #addEncoded(head: Uint8Array, change: PlainChange, path: string, time: number, id: number): boolean {
    const encoded = encoder.encode(JSON.stringify(path).slice(1, -1))
    const buffer = this.#reserve(head, encoded.length, change.mode, time)
    if (buffer === undefined) return false
    const at = this.#begin(buffer, head, id)
    buffer.bytes.set(encoded, at)
    this.#end(buffer, at + encoded.length, change)
    return true
  }

  #reserve(
    head: Uint8Array,
    pathBytes: number,
    mode: string | undefined,
    time: number,
  ): LineBuffer | undefined {
    if (time !== this.#time) {
      this.#time = time
      this.#start = encoder.encode(`{"time":"${new Date(time).toISOString()}","id":`)
    }
    const tail = MAX_TAIL + (mode === undefined ? 0 : this.#modeOf(mode).length)
    return this.#file.reserve(this.#start.length + MAX_DIGITS + head.length + pathBytes + tail)
  }

  /** Writes what is before the path. Returns the offset of the path. */
  #begin({ bytes, length }: LineBuffer, head: Uint8Array, id: number): number {
    bytes.set(this.#start, length)
    const at = writeInteger(id, bytes, length + this.#start.length)
    bytes.set(head, at)
    return at + head.length
  }

  /** Writes what is behind the path, and adds the line. */
  #end(buffer: LineBuffer, at: number, change: PlainChange): void {
    const { bytes } = buffer
    const { mode, version, versionBefore, zxid, bytes: size, xid } = change
    bytes[at++] = QUOTE
    if (mode !== undefined) at = copy(this.#modeOf(mode), bytes, at)
    if (version !== undefined) at = writeInteger(version, bytes, copy(VERSION, bytes, at))
    if (versionBefore !== undefined) at = writeInteger(versionBefore, bytes, copy(VERSION_BEFORE, bytes, at))
    if (zxid !== undefined) {
      at = writeHex(zxid, bytes, copy(ZXID, bytes, at))
      bytes[at++] = QUOTE
    }
    if (size !== undefined) at = writeInteger(size, bytes, copy(BYTES, bytes, at))
    if (xid !== undefined) at = writeInteger(xid, bytes, copy(REQUEST_ID, bytes, at))
    this.#file.added(buffer, copy(END, bytes, at))
  }

  #modeOf(mode: string): Uint8Array {
    let text = this.#modes.get(mode)
    if (text === undefined) {
      text = encoder.encode(`,"mode":${JSON.stringify(mode)}`)
      this.#modes.set(mode, text)
    }
    return text
  }

  #headOf(event: AuditEvent): Uint8Array {
    const line = JSON.stringify(jsonFields(event, { time: 0, id: 0, serverId: this.#serverId }))
    return encoder.encode(line.slice(line.indexOf(',"member"'), line.lastIndexOf(`${PATH_MARK}"}`)))
  }
}

/** Copies a few bytes, which a call of `set` takes longer for. Returns the offset behind them. */
function copy(from: Uint8Array, into: Uint8Array, at: number): number {
  for (let i = 0; i < from.length; i++) into[at++] = from[i]!
  return at
}
