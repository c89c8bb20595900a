import {
  fileLine,
  fileTime,
  type AuditClient,
  type AuditEvent,
  type AuditResult,
  type PlainChange,
} from './audit-event.ts'
import type { AuditFile } from './audit-file.ts'
import { LineHeads, PATH_MARK, writePath } from './line-heads.ts'
import type { RequestsInFlight } from './requests-in-flight.ts'

/** The time with which a line begins. */
const TIME_BYTES = fileTime(0).length

const encoder = new TextEncoder()

/** The end of the lines of all changes that create nothing. */
const SUCCESS = encoder.encode('\tresult=success\n')

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
  readonly #heads = new LineHeads((event) => this.#formatHead(event))
  /** The last head, and the time that it begins with. */
  #head: Uint8Array = new Uint8Array(0)
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
    const isAdded = isPlain ? this.#addPlain(event, event.operation, path, mode, result, time) : undefined
    return isAdded ?? this.#file.append(fileLine(event, this.#textOf(time)))
  }

  /**
   * Adds the line of a change whose request is the first one in flight, so that its path is there as bytes. Returns false when it is
   * lost, undefined for a path that is not copied.
   */
  addFirst(
    client: AuditClient,
    { operation, mode }: PlainChange,
    requests: RequestsInFlight,
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
  addChange(
    client: AuditClient,
    { operation, mode }: PlainChange,
    path: string,
    time: number,
  ): boolean | undefined {
    return this.#addPlain(client, operation, path, mode, 'success', time)
  }

  #addPlain(
    client: AuditClient,
    operation: string,
    path: string,
    mode: string | undefined,
    result: Exclude<AuditResult, 'failure'>,
    time: number,
  ): boolean | undefined {
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
    if (mode === undefined && result === 'success') return SUCCESS
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
    const head = this.#heads.of(client, operation)
    if (head !== this.#head || time !== this.#headTime) {
      this.#head = head
      this.#headTime = time
      head.set(this.#timeBytesOf(time))
    }
    return head
  }

  #formatHead(event: AuditEvent): Uint8Array {
    const line = fileLine(event, this.#textOf(this.#time))
    return encoder.encode(line.slice(0, line.lastIndexOf(`${PATH_MARK}\tresult=`)))
  }
}
