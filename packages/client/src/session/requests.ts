import { ErrorCode, ProtocolError, type Reader } from '@zabra/protocol'
import {
  abortedBy,
  AuthFailedError,
  connectionLoss,
  endedBy,
  errorOf,
  UsageError,
  type ErrorFacts,
  type ZooKeeperError,
} from '../errors.ts'
import { unit } from '../servers/host-list.ts'
import type { RetryPolicy, ServerAddress } from '../types.ts'
import { Batches, forgive, separate } from './batches.ts'
import { callSite, tellCaller } from './caller.ts'
import { answerError, factsOf, infoOf, tooLong, wrongLimit } from './facts.ts'
import type { Lease } from './lease.ts'
import { observeRequest } from './observed.ts'
import type { SessionOptions } from './options.ts'
import { Signals } from './signals.ts'
import { laterCodes, openCodes, zxidOf } from './verdicts.ts'
import { NO_SLOTS, promiseOf, Slot, SlotQueue, type Kind } from './slot.ts'
import type { Wire } from './wire.ts'

/** Slots that wait to be used again. More are left to the garbage collector. */
const SPARE = 1024
const LAST_XID = 0x7fff_ffff
/** A request that was the first to wait at so many losses in a row may be what breaks the connection each time. */
const STRIKES = 5

/** The session that requests belong to. */
export interface RequestsHost {
  readonly lease: Lease
  /** The error with which a call fails now, when the client is finished. */
  readonly refusal: ZooKeeperError | undefined
  readonly sessionId: bigint
  /** A number for the next thing that is told. */
  nextOrder(): number
  /** The server says that the session is elsewhere. */
  moved(): void
  /** The server does not take this client's credentials, or demands some. */
  unwelcome(error: AuthFailedError): void
}

/**
 * Requests from call to answer: pipelined in order on the connection that stands, held while there is none, tried again
 * where that is safe.
 */
export class Requests {
  readonly #options: SessionOptions
  readonly #host: RequestsHost
  #wire: Wire | undefined
  /** The connection on which requests are in flight, also while no more are sent on it. */
  #carrier: Wire | undefined
  #readOnly = false
  #inFlight = NO_SLOTS
  #offline = NO_SLOTS
  #awaitingReadWrite: SlotQueue | undefined
  /** Wait for a moment. */
  #parked: SlotQueue | undefined
  #signals: Signals | undefined
  #spare: Slot | undefined
  #spareCount = 0
  #xid = 0
  #server: ServerAddress | undefined
  /** When the requests that gather for the next write began to do so. */
  #turn = 0
  /** Called when nothing is in flight, once. */
  #idle: (() => void) | undefined
  /** The request whose answer broke the connection has been told. */
  #told = false
  /** Whether the connection that stands has answered anything. */
  answered = false
  /** Only for clients whose reads leave together. */
  readonly #batches: Batches | undefined

  constructor(options: SessionOptions, host: RequestsHost) {
    this.#options = options
    this.#host = host
    if (options.batchReads > 0) this.#batches = new Batches(options, host)
  }

  get sessionId(): bigint {
    return this.#host.sessionId
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
    const promise = promiseOf<T>(slot)
    slot.startedAt = this.#now()
    if (this.#options.callerStacks) slot.site = callSite()
    const { instrumentation, redactPath } = this.#options
    if (instrumentation?.request !== undefined) {
      slot.ended = observeRequest(instrumentation, () => infoOf(slot, this.#server, redactPath), redactPath)
    }
    const { refusal } = this.#host
    if (refusal !== undefined) {
      this.#reject(slot, slot.site === undefined ? refusal : endedBy(refusal, factsOf(slot)))
      return promise
    }
    if (slot.options !== undefined && !this.#limit(slot)) return promise
    this.#dispatch(slot)
    return promise
  }

  /** A connection stands and is primed: what waits goes out. */
  attach(wire: Wire, readOnly: boolean, server: ServerAddress): void {
    this.#wire = this.#carrier = wire
    this.#readOnly = readOnly
    this.#server = server
    this.answered = false
    // What a read-only server refused is older than what came while there was none.
    const refused = readOnly ? undefined : this.#awaitingReadWrite?.drain()
    if (refused === undefined && this.#offline.length === 0) return
    const waiting = [...(refused ?? []), ...this.#offline.drain()]
    for (const slot of waiting) {
      if (slot.attempts > 0 && !this.mayRetry(slot)) this.#lose(slot, 'no connection came in time')
      else this.#send(slot)
    }
  }

  /** Nothing is sent from now on; what is in flight may still be answered. */
  hold(): void {
    this.#wire = undefined
  }

  /** Sends again on the connection that stands, after all. */
  release(): void {
    this.#idle = undefined
    const carrier = this.#carrier
    if (carrier?.open !== true) return
    this.#wire = carrier
    for (const slot of this.#offline.drain()) this.#send(slot)
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
    const head = this.#inFlight.head
    if (head !== undefined && head.xid !== 0) head.strikes++
    if (head?.batched && this.#left(head)) this.#batches!.lost()
    const guilty = cause instanceof ProtocolError && !this.#told ? head : undefined
    const guiltyXid = guilty?.xid
    this.#told = false
    const slots = this.#inFlight.drain()
    const later = this.#offline.drain()
    for (const slot of slots) {
      slot.ambiguous ||= this.#left(slot)
      // Which of a batch it was remains to be seen.
      if (slot.batched && slot.xid === guiltyXid) forgive(slot)
      separate(slot)
    }
    this.#wire = this.#carrier = undefined
    this.#idle = undefined
    let broken = false
    for (const slot of [...slots, ...later]) {
      const again =
        slot.attempts === 0 ||
        (slot !== guilty &&
          slot.strikes < STRIKES &&
          this.mayRetry(slot) &&
          (!slot.ambiguous || slot.kind.repeatable(slot)))
      if (again && !(broken && slot.kind.commits)) {
        this.#hold(slot)
        this.#limitWait(slot)
        continue
      }
      broken ||= slot.kind.commits
      if (slot === guilty) {
        this.#reject(slot, errorOf(ErrorCode.MARSHALLINGERROR, { ...this.facts(slot), cause }))
      } else this.#lose(slot, undefined, cause)
    }
  }

  /** Fails everything that has not been answered. */
  failAll(error: (slot: Slot) => ZooKeeperError): void {
    for (const slot of this.#inFlight.drain()) {
      slot.ambiguous ||= this.#left(slot)
      this.#reject(slot, error(slot))
    }
    this.#wire = this.#carrier = undefined
    this.#idle = undefined
    this.#batches?.startAnew()
    for (const queue of [this.#awaitingReadWrite, this.#offline, this.#parked]) {
      for (const slot of queue?.drain() ?? []) this.#reject(slot, error(slot))
    }
  }

  /** What an error of a request says of it. */
  facts(slot: Slot): ErrorFacts {
    return { ...factsOf(slot), maybeApplied: slot.kind.commits && (slot.ambiguous || this.#left(slot)) }
  }

  /** The answer to the oldest request in flight. Throws when it is the answer to another one. */
  answer(reader: Reader, xid: number, code: number, order: number): void {
    const slot = this.#inFlight.head
    if (slot === undefined || slot.xid !== xid) {
      throw new Error(
        `Expected the answer to request ${slot?.xid ?? 'none'}, got one to ${xid}: the stream of replies is broken`,
      )
    }
    if (slot.batched) return this.#answerBatch(slot, reader, code)
    this.#inFlight.shift()
    this.answered = true
    if (!this.#readOnly)
      this.#host.lease.answered(slot.sentAt, slot.kind.commits && code === 0 ? 'commit' : 'contact')
    if (code === 0) this.#succeed(slot, reader, order)
    else this.refused(slot, code, order)
    if (this.#idle !== undefined) this.#checkIdle()
  }

  /** One answer for the requests of a batch, each of which succeeds or fails as it would have by itself. */
  #answerBatch(first: Slot, reader: Reader, code: number): void {
    const { sentAt } = first
    const told = code === 0 ? this.#batches!.read(reader, first) : undefined
    this.answered = true
    if (!this.#readOnly) this.#host.lease.answered(sentAt, 'contact')
    if (told === undefined) this.#batches!.refused(this.#inFlight, code, this)
    else this.#batches!.settle(this.#inFlight, told, this)
    if (this.#idle !== undefined) this.#checkIdle()
  }

  /** The next request gets the number behind this one: for the test of what follows the last. */
  skipTo(xid: number): void {
    this.#xid = xid
  }

  /** Settles a request that `Kind.interpret` took over. */
  resolveLater(slot: Slot, value: unknown): void {
    this.resolvePart(slot, value, { bytes: 0 })
  }

  /** Settles a request that was answered together with others. */
  resolvePart(slot: Slot, value: unknown, end: { bytes: number; zxid?: bigint }): void {
    slot.ended?.({ sent: slot.bytes, ...end })
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
      this.#told = true
      const facts = { ...factsOf(slot), maybeApplied: slot.kind.commits, cause }
      this.#reject(slot, errorOf(ErrorCode.MARSHALLINGERROR, facts))
      throw cause
    }
    slot.kind.answered?.(slot, 0)
    this.#batches?.single(slot, reader.end - start)
    slot.ended?.({ sent: slot.bytes, bytes: reader.end - start, zxid: zxidOf(reader) })
    this.#resolve(slot, value)
  }

  /** A request, which is no longer in flight, was answered with an error. */
  refused(slot: Slot, code: number, order: number): void {
    const instead = slot.kind.instead?.(slot, code, order)
    if (instead !== undefined) {
      slot.kind.answered?.(slot, code)
      slot.ended?.({ sent: slot.bytes, bytes: 0 })
      return this.#resolve(slot, instead.value)
    }
    const open = openCodes.has(code)
    slot.ambiguous ||= open && slot.kind.commits
    // Otherwise this try was not carried out.
    slot.xid = 0
    if (code === ErrorCode.SESSIONMOVED && this.mayRetry(slot)) {
      this.#inFlight.unshift(slot)
      return this.#host.moved()
    }
    if ((laterCodes.has(code) || (open && slot.kind.repeatable(slot))) && this.mayRetry(slot)) {
      return this.#park(slot)
    }
    if (code === ErrorCode.NOTREADONLY && slot.options?.waitForReadWrite && !slot.abandoned) {
      this.#awaitingReadWrite ??= new SlotQueue()
      return this.#awaitingReadWrite.push(slot)
    }
    if (slot.ambiguous && slot.kind.interpret?.(slot, code, this)) return
    slot.kind.answered?.(slot, code)
    const error = answerError(slot, code, this.facts(slot), this.#host.sessionId)
    this.#reject(slot, error, true)
    if (error instanceof AuthFailedError) this.#host.unwelcome(error)
  }

  #lose(slot: Slot, reason: string | undefined, cause?: Error): void {
    const facts = { ...this.facts(slot), ...(cause === undefined ? {} : { cause }) }
    this.#reject(slot, connectionLoss(reason === undefined ? facts : { ...facts, reason }))
  }

  /** Sends it, or holds it while there is no connection. */
  #dispatch(slot: Slot): void {
    if (this.#wire !== undefined) return this.#send(slot)
    // While a connection stands what waits is on its way, so there is no limit on it.
    const { offlineQueue } = this.#options
    if (this.#carrier === undefined && this.#offline.length >= offlineQueue) {
      return this.#lose(slot, `there is no connection and ${this.#offline.length} requests wait already`)
    }
    this.#hold(slot)
  }

  #hold(slot: Slot): void {
    if (this.#offline === NO_SLOTS) this.#offline = new SlotQueue()
    this.#offline.push(slot)
  }

  #send(slot: Slot): void {
    const wire = this.#wire!
    if (this.#batches?.join(slot, wire) !== true && !this.#write(slot, wire)) return
    slot.cancelRetry?.()
    slot.cancelRetry = undefined
    slot.flushes = wire.flushes
    slot.attempts++
    slot.sentAt = this.#now()
    if (this.#inFlight === NO_SLOTS) this.#inFlight = new SlotQueue()
    this.#inFlight.push(slot)
    wire.schedule()
  }

  /** Writes it in a frame of its own. False when it cannot be sent, and has failed. */
  #write(slot: Slot, wire: Wire): boolean {
    const { writer } = wire
    const mark = writer.beginFrame()
    this.#xid = this.#xid === LAST_XID ? 1 : this.#xid + 1
    try {
      writer.int(this.#xid)
      writer.int(slot.kind.type)
      slot.kind.encode(writer, slot)
    } catch (cause) {
      writer.truncate(mark)
      const reason = cause instanceof Error ? cause.message : String(cause)
      const message = `Expected arguments that ${slot.kind.name} can send: ${reason}`
      this.#reject(slot, new UsageError(message, { ...factsOf(slot), cause }))
      return false
    }
    writer.endFrame(mark)
    slot.bytes = writer.length - mark
    if (slot.bytes - 4 > this.#options.maxRequest) {
      writer.truncate(mark)
      this.#reject(slot, tooLong(slot, this.#options.maxRequest))
      return false
    }
    slot.xid = this.#xid
    this.#batches?.open(slot, wire, mark)
    return true
  }

  /** Whether a request in flight has been handed to the transport. */
  #left(slot: Slot): boolean {
    return slot.xid !== 0 && this.#carrier !== undefined && this.#carrier.flushes > slot.flushes
  }

  /** Lets the caller's signal and time limit end the call. False when they have done so already. */
  #limit(slot: Slot): boolean {
    const { signal, timeout } = slot.options!
    const wrong = wrongLimit(slot)
    if (wrong !== undefined) {
      this.#reject(slot, wrong)
      return false
    }
    if (signal !== undefined) {
      this.#signals ??= new Signals((one, reason) => this.#abandon(one, reason))
      this.#signals.add(signal, slot)
    }
    if (timeout !== undefined) {
      slot.cancelTimer = this.#options.clock.after(timeout, `deadline of ${slot.kind.name}`, () =>
        this.#abandon(slot, TIMEOUT),
      )
    }
    return true
  }

  /** Nobody waits any more. What is in flight, or leaves with this turn, stays in the queue: its answer will come. */
  #abandon(slot: Slot, reason: unknown): void {
    if (slot.queue !== undefined && slot.queue !== this.#inFlight) {
      slot.queue.remove(slot)
      return this.#reject(slot, abortedBy(reason, this.facts(slot)))
    }
    const error = abortedBy(reason, { ...factsOf(slot), maybeApplied: slot.kind.commits })
    slot.abandoned = true
    this.#loosen(slot)
    if (slot.site !== undefined) tellCaller(error, slot.site)
    slot.ended?.({ error, sent: slot.bytes, bytes: 0 })
    slot.ended = undefined
    slot.reject(error)
  }

  #park(slot: Slot): void {
    const { base = 100, factor = 2, cap = 10_000 } = this.#policy(slot)
    const wait = unit(this.#options.random) * Math.min(cap, base * factor ** (slot.attempts - 1))
    const parked = (this.#parked ??= new SlotQueue())
    parked.push(slot)
    slot.cancelRetry = this.#options.clock.after(wait, `retry of ${slot.kind.name}`, () => {
      slot.cancelRetry = undefined
      if (parked.remove(slot)) this.#dispatch(slot)
    })
  }

  /** Waiting for a connection counts as time of the policy too. */
  #limitWait(slot: Slot): void {
    const { maxElapsed } = this.#policy(slot)
    if (slot.attempts === 0 || maxElapsed === undefined) return
    const left = Math.max(0, slot.startedAt + maxElapsed - this.#now())
    slot.cancelRetry = this.#options.clock.after(left, `end of retries of ${slot.kind.name}`, () => {
      slot.cancelRetry = undefined
      if (this.#offline.remove(slot)) this.#lose(slot, 'no connection came in time')
    })
  }

  #policy(slot: Slot): RetryPolicy {
    return slot.options?.retry || this.#options.retry
  }

  mayRetry(slot: Slot): boolean {
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
    if (slot.site !== undefined) tellCaller(error, slot.site)
    slot.ended?.({ error, sent: slot.bytes, bytes: 0 })
    slot.reject(error)
    this.#free(slot)
  }

  /** Nothing else may end it from now on. */
  #loosen(slot: Slot): void {
    if (slot.signalled) this.#signals?.remove(slot.options!.signal!, slot)
    slot.cancelTimer?.()
    slot.cancelTimer = undefined
    slot.cancelRetry?.()
    slot.cancelRetry = undefined
  }

  #free(slot: Slot): void {
    slot.clear()
    if (this.#spareCount >= SPARE) return
    slot.next = this.#spare
    this.#spare = slot
    this.#spareCount++
  }

  /** The time at which the requests of this turn began to gather: never later than when they leave. */
  #now(): number {
    const wire = this.#wire
    if (wire === undefined || !wire.gathers || this.#turn < wire.lastSent) {
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

const TIMEOUT = { name: 'TimeoutError', message: 'The deadline of the call passed' }
