import { ErrorCode, type Reader } from '@zabra/protocol'
import type { Clock, Random } from '@zabra/runtime'
import {
  abortedBy,
  connectionLoss,
  errorOf,
  UsageError,
  type ErrorFacts,
  type ZooKeeperError,
} from '../errors.ts'
import { unit } from '../servers/host-list.ts'
import { toClient } from '../chroot.ts'
import type { Instrumentation, RetryPolicy } from '../types.ts'
import type { Lease } from './lease.ts'
import { Slot, SlotQueue, type Kind } from './slot.ts'
import type { Wire } from './wire.ts'

/** Slots that wait to be used again. More are left to the garbage collector. */
const SPARE = 1024
const LAST_XID = 0x7fff_ffff

export interface RequestsOptions {
  readonly clock: Clock
  readonly random: Random
  readonly lease: Lease
  readonly retry: RetryPolicy
  readonly offlineQueue: number
  readonly maxRequest: number
  readonly instrumentation: Instrumentation | undefined
  readonly redactPath: (path: string) => string
  /** The error with which a call fails now, when the client is finished. */
  readonly finished: () => ZooKeeperError | undefined
  /** The server says that the session is elsewhere. */
  readonly moved: () => void
  readonly sessionId: () => bigint
}

/**
 * Requests from call to answer: pipelined in order on the connection that stands, held while there is none, tried again
 * where that is safe.
 */
export class Requests {
  readonly #options: RequestsOptions
  #wire: Wire | undefined
  #readOnly = false
  readonly #inFlight = new SlotQueue()
  readonly #offline = new SlotQueue()
  /** Wait for a moment or for a server that takes writes. */
  readonly #parked = new Set<Slot>()
  readonly #awaitingReadWrite = new Set<Slot>()
  #spare: Slot | undefined
  #spareCount = 0
  #xid = 0
  #server: string | undefined
  /** When the requests that gather for the next write began to do so. */
  #turn = 0
  /** Called when nothing is in flight, once. */
  #idle: (() => void) | undefined

  constructor(options: RequestsOptions) {
    this.#options = options
  }

  get inFlight(): number {
    return this.#inFlight.length
  }

  get waiting(): number {
    return this.#offline.length + this.#parked.size
  }

  take(kind: Kind): Slot {
    const slot = this.#spare ?? new Slot()
    if (this.#spare !== undefined) {
      this.#spare = slot.next
      this.#spareCount--
    }
    slot.next = undefined
    slot.kind = kind
    return slot
  }

  /** Sends a request, or holds it until that is possible. */
  submit<T>(slot: Slot): Promise<T> {
    const promise = new Promise<T>((resolve, reject) => {
      slot.resolve = resolve as (value: never) => void
      slot.reject = reject
    })
    slot.startedAt = this.#now()
    const finished = this.#options.finished()
    if (finished !== undefined) {
      this.#reject(slot, finished)
      return promise
    }
    if (slot.options !== undefined && !this.#limit(slot)) return promise
    this.#dispatch(slot)
    return promise
  }

  /** A connection stands and is primed: what waits goes out. */
  attach(wire: Wire, readOnly: boolean, server: string): void {
    this.#wire = wire
    this.#readOnly = readOnly
    this.#server = server
    if (!readOnly) {
      for (const slot of this.#awaitingReadWrite) this.#offline.push(slot)
      this.#awaitingReadWrite.clear()
    }
    for (const slot of this.#offline.drain()) this.#send(slot)
  }

  /** Nothing is sent from now on; what is in flight may still be answered. */
  hold(): void {
    this.#wire = undefined
  }

  /** Runs `action` as soon as nothing is in flight. */
  whenIdle(action: () => void): void {
    this.#idle = action
    this.#checkIdle()
  }

  /**
   * The connection is gone. What can be tried again waits for the next one, in order; the rest fails. Once a write has
   * failed the writes behind it fail too: nobody may see a later one carried out without an earlier one.
   */
  detach(cause: Error): void {
    this.#wire = undefined
    this.#idle = undefined
    const kept: Slot[] = []
    let broken = false
    for (const slot of this.#inFlight.drain()) {
      slot.ambiguous = true
      const again = this.#mayRetry(slot) && slot.kind.repeatable(slot) && !(broken && slot.kind.commits)
      if (again) kept.push(slot)
      else {
        broken ||= slot.kind.commits
        this.#reject(slot, connectionLoss({ ...this.#facts(slot), maybeApplied: true, cause }))
      }
    }
    const later = this.#offline.drain()
    for (const slot of [...kept, ...later]) this.#offline.push(slot)
  }

  /** Fails everything that has not been answered. */
  failAll(error: (slot: Slot) => ZooKeeperError): void {
    const slots = [
      ...this.#inFlight.drain(),
      ...this.#offline.drain(),
      ...this.#parked,
      ...this.#awaitingReadWrite,
    ]
    this.#parked.clear()
    this.#awaitingReadWrite.clear()
    this.#wire = undefined
    for (const slot of slots) this.#reject(slot, error(slot))
  }

  facts(slot: Slot): ErrorFacts {
    return { ...this.#facts(slot), maybeApplied: slot.ambiguous || slot.xid !== 0 }
  }

  /** The answer to the oldest request in flight. Throws when it is the answer to another one. */
  answer(reader: Reader, xid: number, code: number, order: number): void {
    const slot = this.#inFlight.head
    if (slot === undefined || slot.xid !== xid) {
      throw new Error(
        `Expected the answer to request ${slot?.xid ?? 'none'}, got one to ${xid}: the stream of replies is broken`,
      )
    }
    this.#inFlight.shift()
    if (!this.#readOnly)
      this.#options.lease.answered(slot.sentAt, slot.kind.commits && code === 0 ? 'commit' : 'contact')
    if (code === 0) this.#succeed(slot, reader, order)
    else this.#refused(slot, code, order)
    if (this.#idle !== undefined) this.#checkIdle()
  }

  get sessionId(): bigint {
    return this.#options.sessionId()
  }

  /** The next request gets the number behind this one: for the test of what follows the last. */
  skipTo(xid: number): void {
    this.#xid = xid
  }

  /** Settles a request that `Kind.interpret` took over. */
  resolveLater(slot: Slot, value: unknown): void {
    slot.ended?.({ bytes: 0 })
    this.#resolve(slot, value)
  }

  rejectLater(slot: Slot, error: ZooKeeperError): void {
    this.#reject(slot, error)
  }

  #succeed(slot: Slot, reader: Reader, order: number): void {
    const start = reader.offset
    let value: unknown
    try {
      value = slot.kind.decode(reader, slot, order)
    } catch (cause) {
      // The caller hears of it, and the connection ends: nothing behind a malformed reply can be trusted.
      const facts = { ...this.#facts(slot), maybeApplied: slot.kind.commits, cause }
      this.#reject(slot, errorOf(ErrorCode.MARSHALLINGERROR, facts))
      throw cause
    }
    slot.kind.answered?.(slot, 0)
    slot.ended?.({ bytes: reader.end - start, zxid: zxidOf(reader) })
    this.#resolve(slot, value)
  }

  #refused(slot: Slot, code: number, order: number): void {
    const instead = slot.kind.instead?.(slot, code, order)
    if (instead !== undefined) {
      slot.kind.answered?.(slot, code)
      slot.ended?.({ bytes: 0 })
      return this.#resolve(slot, instead.value)
    }
    // None of the following was carried out.
    slot.xid = 0
    if (code === ErrorCode.SESSIONMOVED && this.#mayRetry(slot)) {
      this.#offline.push(slot)
      return this.#options.moved()
    }
    if (code === ErrorCode.THROTTLEDOP && this.#mayRetry(slot)) return this.#park(slot)
    if (code === ErrorCode.NOTREADONLY && slot.options?.waitForReadWrite) {
      this.#awaitingReadWrite.add(slot)
      return
    }
    if (slot.ambiguous && slot.kind.interpret?.(slot, code, this)) return
    slot.kind.answered?.(slot, code)
    this.#reject(slot, errorOf(code, this.#facts(slot), this.#options.sessionId()), true)
  }

  /** Sends it, or holds it while there is no connection. */
  #dispatch(slot: Slot): void {
    if (this.#wire !== undefined) return this.#send(slot)
    if (this.#offline.length >= this.#options.offlineQueue) {
      const reason = `there is no connection and ${this.#offline.length} requests wait already`
      return this.#reject(slot, connectionLoss({ ...this.#facts(slot), reason }))
    }
    this.#offline.push(slot)
    if (slot.ended === undefined) this.#begin(slot, 0)
  }

  #send(slot: Slot): void {
    const wire = this.#wire!
    const { writer } = wire
    const mark = writer.beginFrame()
    this.#xid = this.#xid === LAST_XID ? 1 : this.#xid + 1
    slot.xid = this.#xid
    writer.int(slot.xid)
    writer.int(slot.kind.type)
    slot.kind.encode(writer, slot)
    writer.endFrame(mark)
    slot.bytes = writer.length - mark
    if (slot.bytes - 4 > this.#options.maxRequest) {
      writer.truncate(mark)
      const error = new UsageError(
        `Expected a request of at most ${this.#options.maxRequest} bytes, got ${slot.bytes - 4}. Store less in one znode, or raise maxRequest here and jute.maxbuffer on the servers`,
        this.#facts(slot),
      )
      slot.xid = 0
      return this.#reject(slot, error)
    }
    slot.attempts++
    slot.sentAt = this.#now()
    this.#inFlight.push(slot)
    if (slot.ended === undefined) this.#begin(slot, slot.bytes)
    wire.schedule()
  }

  /** Lets the caller's signal and time limit end the call. False when they have done so already. */
  #limit(slot: Slot): boolean {
    const { signal, timeout } = slot.options!
    if (signal?.aborted) {
      this.#reject(slot, abortedBy(signal.reason, this.#facts(slot)))
      return false
    }
    if (signal !== undefined) {
      slot.abort = () => this.#abandon(slot, signal.reason)
      signal.addEventListener('abort', slot.abort, { once: true })
    }
    if (timeout !== undefined) {
      slot.cancelTimer = this.#options.clock.after(timeout, `deadline of ${slot.kind.name}`, () =>
        this.#abandon(slot, TIMEOUT),
      )
    }
    return true
  }

  /** Nobody waits any more. What is in flight stays in the queue, since its answer will come. */
  #abandon(slot: Slot, reason: unknown): void {
    const sent = slot.attempts > 0
    const error = abortedBy(reason, { ...this.#facts(slot), maybeApplied: sent && slot.kind.commits })
    if (this.#parked.delete(slot) || this.#awaitingReadWrite.delete(slot) || this.#offline.remove(slot)) {
      return this.#reject(slot, error)
    }
    slot.abandoned = true
    this.#loosen(slot)
    slot.ended?.({ error, bytes: 0 })
    slot.ended = undefined
    slot.reject(error)
  }

  #park(slot: Slot): void {
    const { base = 100, factor = 2, cap = 10_000 } = this.#policy(slot)
    const wait = unit(this.#options.random) * Math.min(cap, base * factor ** (slot.attempts - 1))
    this.#parked.add(slot)
    this.#options.clock.after(wait, `retry of ${slot.kind.name}`, () => {
      if (this.#parked.delete(slot)) this.#dispatch(slot)
    })
  }

  #policy(slot: Slot): RetryPolicy {
    return slot.options?.retry || this.#options.retry
  }

  #mayRetry(slot: Slot): boolean {
    if (slot.abandoned || slot.options?.retry === false) return false
    const { maxAttempts = Infinity, maxElapsed = Infinity } = this.#policy(slot)
    return slot.attempts < maxAttempts && this.#now() - slot.startedAt < maxElapsed
  }

  #resolve(slot: Slot, value: unknown): void {
    if (slot.options !== undefined) this.#loosen(slot)
    slot.resolve(value as never)
    this.#free(slot)
  }

  /** `answered` says that the kind has heard of the end of the request already. */
  #reject(slot: Slot, error: ZooKeeperError, answered = false): void {
    this.#loosen(slot)
    if (!answered) slot.kind.dropped?.(slot)
    slot.ended?.({ error, bytes: 0 })
    slot.reject(error)
    this.#free(slot)
  }

  #loosen(slot: Slot): void {
    if (slot.abort !== undefined) slot.options?.signal?.removeEventListener('abort', slot.abort)
    slot.abort = undefined
    slot.cancelTimer?.()
    slot.cancelTimer = undefined
  }

  #free(slot: Slot): void {
    slot.clear()
    slot.xid = 0
    if (this.#spareCount >= SPARE) return
    slot.next = this.#spare
    this.#spare = slot
    this.#spareCount++
  }

  #begin(slot: Slot, bytes: number): void {
    const { instrumentation } = this.#options
    if (instrumentation?.request === undefined) return
    const own = this.#clientPath(slot)
    const path = own === undefined ? undefined : this.#options.redactPath(own)
    const info = {
      operation: slot.kind.name,
      bytes,
      ...(path === undefined ? {} : { path }),
      ...(this.#server === undefined ? {} : { server: this.#server }),
    }
    try {
      const ended = instrumentation.request(info)
      if (ended === undefined) return
      slot.ended = (end) => {
        try {
          ended(end)
        } catch {
          // A broken observer must not break what it observes.
        }
      }
    } catch {
      // The same.
    }
  }

  #clientPath(slot: Slot): string | undefined {
    return slot.path === '' ? undefined : (toClient(slot.root, slot.path) ?? slot.path)
  }

  #facts(slot: Slot): ErrorFacts {
    return { operation: slot.kind.name, path: this.#clientPath(slot) }
  }

  /** The time at which the requests of this turn began to gather: never later than when they leave. */
  #now(): number {
    const wire = this.#wire
    if (wire === undefined || wire.writer.length === 0 || this.#turn < wire.lastSent) {
      this.#turn = this.#options.clock.monotonic()
    }
    return this.#turn
  }

  #checkIdle(): void {
    if (this.#inFlight.length > 0 || this.#idle === undefined) return
    const idle = this.#idle
    this.#idle = undefined
    idle()
  }
}

/** The zxid in the header of the reply that a reader stands in. */
export function zxidOf(reader: Reader): bigint {
  const { offset } = reader
  reader.offset = reader.start + 4
  const zxid = reader.long()
  reader.offset = offset
  return zxid
}

const TIMEOUT = { name: 'TimeoutError', message: 'The deadline of the call passed' }
