import type { SessionId } from '../core/types.ts'
import { fileLine, fileTime, type AuditClient, type AuditEvent, type AuditResult } from './audit-event.ts'
import type { AuditFile } from './audit-file.ts'
import type { RequestsInFlight } from './requests-in-flight.ts'

const BACKSLASH = 0x5c
/** Characters of a path that is copied one by one. */
const MAX_PATH = 512

/** The time with which a line begins. */
const TIME_BYTES = fileTime(0).length

/** A mark for a path in an event, where the beginning of its line ends. */
const PATH_MARK = '/'

/** The beginnings of the lines of a client, without their time, by operation. */
interface ClientHeads {
  readonly session: SessionId | undefined
  readonly ip: string | undefined
  readonly heads: Map<string, Uint8Array>
}

const encoder = new TextEncoder()

/**
 * Adds events to a file as the lines of Apache ZooKeeper.
 *
 * Optimised: the beginning of a line, up to its path, is copied from the last line of the same client; a path of ASCII follows
 * character by character. No string is made.
 * Why: formatting and encoding a line as text costs a fifth of a write.
 * Rules: lines are those of `fileLine`, with which `apache-lines.test.ts` compares them.
 */
export class ApacheLines {
  readonly #file: AuditFile
  #time = 0
  #timeText = ''
  readonly #timeBytes = new Uint8Array(TIME_BYTES)
  /** The heads of clients by their names, which stay the same array until they log in. */
  readonly #clients = new WeakMap<readonly string[], ClientHeads>()
  /** The last head, with its time, and what it was made for. */
  #head: Uint8Array = new Uint8Array(0)
  #lastClient: AuditClient | undefined
  #headOperation = ''
  #headTime = -1
  /** The ends of lines by their create mode. */
  readonly #tails = {
    success: new Map<string | undefined, Uint8Array>(),
    invoked: new Map<string | undefined, Uint8Array>(),
  }

  constructor(file: AuditFile) {
    this.#file = file
  }

  /** Adds the line of an event. Returns false when it is lost. */
  add(event: AuditEvent, time: number): boolean {
    const { path, mode, result } = event
    const isPlain =
      path !== undefined &&
      result !== 'failure' &&
      event.acl === undefined &&
      event.scheme === undefined &&
      event.lost === undefined
    const isAdded = isPlain ? this.addPlain(event, event.operation, path, mode, result, time) : undefined
    return isAdded ?? this.#file.append(fileLine(event, this.#textOf(time)))
  }

  /**
   * Adds the line of a change whose request is the first one in flight, so that its path is there as bytes. Returns false when it is
   * lost, undefined for a path that is not copied.
   */
  addFirst(
    client: AuditClient,
    operation: string,
    requests: RequestsInFlight,
    mode: string | undefined,
    time: number,
  ): boolean | undefined {
    const length = requests.plainLength
    if (length < 0) return undefined
    const head = this.#headOf(client, operation, time)
    const tail = this.#tailOf(mode, 'success')
    const buffer = this.#file.reserve(head.length + length + tail.length)
    if (buffer === undefined) return false
    const { bytes } = buffer
    bytes.set(head, buffer.length)
    const pathStart = buffer.length + head.length
    requests.copyPlain(buffer.view, pathStart)
    const pathEnd = pathStart + length
    bytes.set(tail, pathEnd)
    this.#file.added(buffer, pathEnd + tail.length)
    return true
  }

  /** Adds the line of a change. Returns false when it is lost, undefined for a path that is not copied. */
  addPlain(
    client: AuditClient,
    operation: string,
    path: string,
    mode: string | undefined,
    result: Exclude<AuditResult, 'failure'>,
    time: number,
  ): boolean | undefined {
    if (path.length > MAX_PATH) return undefined
    const head = this.#headOf(client, operation, time)
    const tail = this.#tailOf(mode, result)
    const buffer = this.#file.reserve(head.length + path.length + tail.length)
    if (buffer === undefined) return false
    const { bytes } = buffer
    bytes.set(head, buffer.length)
    const pathEnd = writePath(path, bytes, buffer.length + head.length)
    if (pathEnd === -1) return undefined
    bytes.set(tail, pathEnd)
    this.#file.added(buffer, pathEnd + tail.length)
    return true
  }

  #textOf(time: number): string {
    if (time !== this.#time || this.#timeText === '') {
      this.#time = time
      this.#timeText = fileTime(time)
      encoder.encodeInto(this.#timeText, this.#timeBytes)
    }
    return this.#timeText
  }

  #timeBytesOf(time: number): Uint8Array {
    this.#textOf(time)
    return this.#timeBytes
  }

  /** Returns the bytes of the line after the path. */
  #tailOf(mode: string | undefined, result: Exclude<AuditResult, 'failure'>): Uint8Array {
    const tails = this.#tails[result]
    let tail = tails.get(mode)
    if (tail === undefined) {
      const type = mode === undefined ? '' : `\tznode_type=${mode}`
      tail = encoder.encode(`${type}\tresult=${result}\n`)
      tails.set(mode, tail)
    }
    return tail
  }

  /** Returns the bytes of the line before the path. */
  #headOf(client: AuditClient, operation: string, time: number): Uint8Array {
    const isSame = client === this.#lastClient && operation === this.#headOperation
    if (!isSame) {
      this.#head = this.#findHead(client, operation)
      this.#lastClient = client
      this.#headOperation = operation
    }
    if (!isSame || time !== this.#headTime) {
      this.#headTime = time
      this.#head.set(this.#timeBytesOf(time))
    }
    return this.#head
  }

  #findHead({ users, session, ip }: AuditClient, operation: string): Uint8Array {
    let client = users === undefined ? undefined : this.#clients.get(users)
    if (client === undefined || client.session !== session || client.ip !== ip) {
      client = { session, ip, heads: new Map() }
      if (users !== undefined) this.#clients.set(users, client)
    }
    let head = client.heads.get(operation)
    if (head === undefined) {
      const first = {
        category: 'writes',
        operation,
        result: 'success',
        session,
        users,
        ip,
        path: PATH_MARK,
      } as const
      const line = fileLine(first, this.#textOf(this.#time))
      head = encoder.encode(line.slice(0, line.lastIndexOf(`${PATH_MARK}\tresult=`)))
      client.heads.set(operation, head)
    }
    return head
  }
}

/** Writes a path that needs no escapes. Returns the offset after it, -1 if it is another path. */
function writePath(path: string, into: Uint8Array, at: number): number {
  for (let i = 0; i < path.length; i++) {
    const unit = path.charCodeAt(i)
    if (unit < 0x20 || unit > 0x7e || unit === BACKSLASH) return -1
    into[at++] = unit
  }
  return at
}
