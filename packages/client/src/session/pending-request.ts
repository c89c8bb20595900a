import type { Reader, Writer } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { ZooKeeperError } from '../errors.ts'
import type { Bytes, CallOptions, RequestEndCallback } from '../types.ts'
import type { RequestDispatcher } from './request-dispatcher.ts'

/** Where a call was made, as far as its stack is kept. */
export interface CallSite {
  stack?: string | undefined
}

/** What a kind of request is: how it is written and read, and what may be made of its errors. */
export interface Operation {
  readonly name: string
  /** Op code. */
  readonly opCode: number
  /** Whether an answer proves that a quorum has committed; `lease.ts` says what that is worth. */
  readonly isWrite: boolean
  /** The path on the server whose absence is what `NONODE` means. */
  requiredPath?(slot: PendingRequest): string
  encode(writer: Writer, slot: PendingRequest): void
  /** The result of a reply without error. `reader` stands behind the header. */
  decode(reader: Reader, slot: PendingRequest, order: number): unknown
  /** Whether sending it again is safe when nobody knows if the first try was carried out. */
  isIdempotent(slot: PendingRequest): boolean
  /** An error that is a result all the same, such as an absent node for `exists`. */
  recover?(slot: PendingRequest, code: number, order: number): { readonly value: unknown } | undefined
  /** The request was answered, with `code` 0 or an error: before its promise settles. */
  onReply?(slot: PendingRequest, code: number): void
  /** It will never be answered: the session or the client is over, or it failed for good. */
  onDrop?(slot: PendingRequest): void
  /**
   * The answer to a second try is an error, which may come from the first having succeeded. True says that this settles
   * the request, now or later.
   */
  resolveAmbiguous?(slot: PendingRequest, code: number, requests: RequestDispatcher): boolean
}

const ignore = (): void => {}

/**
 * One request from call to answer.
 *
 * FENCED: slots are reused, with plain fields that mean something to some kinds only.
 * Why: a client in full flow makes a hundred thousand requests a second, and an object with closures for each of them
 * is what its garbage collector would spend its time on. Rules: `RequestDispatcher` alone takes and frees them; nobody keeps one
 * after its promise is settled.
 */
export class PendingRequest {
  operation!: Operation
  /** On the server. */
  path = ''
  /** The chroot that the path was mapped with. */
  chroot = ''
  data: Bytes | null = null
  /** A version, flags or mode. */
  intArgument = 0
  /** A time to live. */
  ttl = 0
  watch = false
  /** Whatever else the kind needs. */
  params: unknown
  options: CallOptions | undefined
  resolve: (value: never) => void = ignore
  reject: (error: ZooKeeperError) => void = ignore

  xid = 0
  /** Monotonic milliseconds: when the call was made, and when the last try left or a little earlier. */
  startedAt = 0
  sentAt = 0
  requestBytes = 0
  attempts = 0
  /** An earlier try left and was never answered. */
  isAmbiguous = false
  /** Nobody waits any more; the answer is only counted. */
  isAbandoned = false
  /** Losses of connections at which it was the first that waited for its answer. */
  headLosses = 0
  /** It left together with others, in a batch whose requests have the same xid. */
  isBatched = false
  /** It leaves in a frame of its own. */
  sendsAlone = false
  /** Writes of the connection before it was put into one. */
  flushesBefore = 0
  /** Its caller's signal is listened to. */
  hasSignalListener = false
  cancelTimer: Cancel | undefined
  cancelRetry: Cancel | undefined
  onEnd: RequestEndCallback | undefined
  callSite: CallSite | undefined
  list: RequestList | undefined
  next: PendingRequest | undefined
  previous: PendingRequest | undefined

  /** Forgets everything that could keep memory alive. */
  clear(): void {
    this.path = ''
    this.chroot = ''
    this.data = null
    this.intArgument = 0
    this.ttl = 0
    this.watch = false
    this.params = undefined
    this.options = undefined
    this.resolve = ignore
    this.reject = ignore
    this.attempts = 0
    this.isAmbiguous = false
    this.isAbandoned = false
    this.isBatched = false
    this.sendsAlone = false
    this.xid = 0
    this.headLosses = 0
    this.requestBytes = 0
    this.onEnd = undefined
    this.callSite = undefined
  }
}

/** A queue through the links of slots, so that moving them costs nothing. A slot is in one queue at a time. */
export class RequestList {
  #head: PendingRequest | undefined
  #tail: PendingRequest | undefined
  length = 0

  get head(): PendingRequest | undefined {
    return this.#head
  }

  push(slot: PendingRequest): void {
    slot.list = this
    slot.next = undefined
    slot.previous = this.#tail
    if (this.#tail === undefined) this.#head = slot
    else this.#tail.next = slot
    this.#tail = slot
    this.length++
  }

  /** Puts it before all others. */
  unshift(slot: PendingRequest): void {
    slot.list = this
    slot.previous = undefined
    slot.next = this.#head
    if (this.#head === undefined) this.#tail = slot
    else this.#head.previous = slot
    this.#head = slot
    this.length++
  }

  shift(): PendingRequest | undefined {
    const slot = this.#head
    if (slot !== undefined) this.remove(slot)
    return slot
  }

  /** Takes all of them, in order. */
  drain(): PendingRequest[] {
    const slots: PendingRequest[] = []
    for (let slot = this.shift(); slot !== undefined; slot = this.shift()) slots.push(slot)
    return slots
  }

  /** False when it is not in this queue. */
  remove(slot: PendingRequest): boolean {
    if (slot.list !== this) return false
    if (slot.previous === undefined) this.#head = slot.next
    else slot.previous.next = slot.next
    if (slot.next === undefined) this.#tail = slot.previous
    else slot.next.previous = slot.previous
    slot.list = slot.next = slot.previous = undefined
    this.length--
    return true
  }
}

/** For clients that have had no requests yet: nothing is ever put into it. */
export const EMPTY_REQUEST_LIST = new RequestList()

/** What settles the promise that was made last: one function for all of them, where each had a closure of its own. */
let resolveNew: (value: never) => void
let rejectNew: (error: unknown) => void
function captureResolvers(resolve: (value: never) => void, reject: (error: unknown) => void): void {
  resolveNew = resolve
  rejectNew = reject
}

/** A promise that the slot settles. */
export function createPromise<T>(slot: PendingRequest): Promise<T> {
  const promise = new Promise<T>(
    captureResolvers as (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
  )
  slot.resolve = resolveNew
  slot.reject = rejectNew
  return promise
}
