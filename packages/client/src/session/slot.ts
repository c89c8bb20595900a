import type { Reader, Writer } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { ZooKeeperError } from '../errors.ts'
import type { Bytes, CallOptions, RequestEnd } from '../types.ts'
import type { Requests } from './requests.ts'

/** Where a call was made, as far as its stack is kept. */
export interface CallSite {
  stack?: string | undefined
}

/** What a kind of request is: how it is written and read, and what may be made of its errors. */
export interface Kind {
  readonly name: string
  /** Op code. */
  readonly type: number
  /** Whether an answer proves that a quorum has committed; `lease.ts` says what that is worth. */
  readonly commits: boolean
  /** The path on the server whose absence is what `NONODE` means. */
  needs?(slot: Slot): string
  encode(writer: Writer, slot: Slot): void
  /** The result of a reply without error. `reader` stands behind the header. */
  decode(reader: Reader, slot: Slot, order: number): unknown
  /** Whether sending it again is safe when nobody knows if the first try was carried out. */
  repeatable(slot: Slot): boolean
  /** An error that is a result all the same, such as an absent node for `exists`. */
  instead?(slot: Slot, code: number, order: number): { readonly value: unknown } | undefined
  /** The request was answered, with `code` 0 or an error: before its promise settles. */
  answered?(slot: Slot, code: number): void
  /** It will never be answered: the session or the client is over, or it failed for good. */
  dropped?(slot: Slot): void
  /**
   * The answer to a second try is an error, which may come from the first having succeeded. True says that this settles
   * the request, now or later.
   */
  interpret?(slot: Slot, code: number, requests: Requests): boolean
}

const ignore = (): void => {}

/**
 * One request from call to answer.
 *
 * FENCED: slots are reused, with plain fields that mean something to some kinds only.
 * Why: a client in full flow makes a hundred thousand requests a second, and an object with closures for each of them
 * is what its garbage collector would spend its time on. Rules: `Requests` alone takes and frees them; nobody keeps one
 * after its promise is settled.
 */
export class Slot {
  kind!: Kind
  /** On the server. */
  path = ''
  /** The chroot that the path was mapped with. */
  root = ''
  data: Bytes | null = null
  /** A version, flags or mode. */
  number = 0
  /** A time to live. */
  ttl = 0
  watch = false
  /** Whatever else the kind needs. */
  extra: unknown
  options: CallOptions | undefined
  resolve: (value: never) => void = ignore
  reject: (error: ZooKeeperError) => void = ignore

  xid = 0
  /** Monotonic milliseconds: when the call was made, and when the last try left or a little earlier. */
  startedAt = 0
  sentAt = 0
  bytes = 0
  attempts = 0
  /** An earlier try left and was never answered. */
  ambiguous = false
  /** Nobody waits any more; the answer is only counted. */
  abandoned = false
  /** Losses of connections at which it was the first that waited for its answer. */
  strikes = 0
  /** It left together with others, in a batch whose requests have the same xid. */
  batched = false
  /** It leaves in a frame of its own. */
  alone = false
  /** Writes of the connection before it was put into one. */
  flushes = 0
  /** Its caller's signal is listened to. */
  signalled = false
  cancelTimer: Cancel | undefined
  cancelRetry: Cancel | undefined
  ended: RequestEnd | undefined
  site: CallSite | undefined
  queue: SlotQueue | undefined
  next: Slot | undefined
  previous: Slot | undefined

  /** Forgets everything that could keep memory alive. */
  clear(): void {
    this.path = ''
    this.root = ''
    this.data = null
    this.number = 0
    this.ttl = 0
    this.watch = false
    this.extra = undefined
    this.options = undefined
    this.resolve = ignore
    this.reject = ignore
    this.attempts = 0
    this.ambiguous = false
    this.abandoned = false
    this.batched = false
    this.alone = false
    this.xid = 0
    this.strikes = 0
    this.bytes = 0
    this.ended = undefined
    this.site = undefined
  }
}

/** A queue through the links of slots, so that moving them costs nothing. A slot is in one queue at a time. */
export class SlotQueue {
  #head: Slot | undefined
  #tail: Slot | undefined
  length = 0

  get head(): Slot | undefined {
    return this.#head
  }

  push(slot: Slot): void {
    slot.queue = this
    slot.next = undefined
    slot.previous = this.#tail
    if (this.#tail === undefined) this.#head = slot
    else this.#tail.next = slot
    this.#tail = slot
    this.length++
  }

  /** Puts it before all others. */
  unshift(slot: Slot): void {
    slot.queue = this
    slot.previous = undefined
    slot.next = this.#head
    if (this.#head === undefined) this.#tail = slot
    else this.#head.previous = slot
    this.#head = slot
    this.length++
  }

  shift(): Slot | undefined {
    const slot = this.#head
    if (slot !== undefined) this.remove(slot)
    return slot
  }

  /** Takes all of them, in order. */
  drain(): Slot[] {
    const slots: Slot[] = []
    for (let slot = this.shift(); slot !== undefined; slot = this.shift()) slots.push(slot)
    return slots
  }

  /** False when it is not in this queue. */
  remove(slot: Slot): boolean {
    if (slot.queue !== this) return false
    if (slot.previous === undefined) this.#head = slot.next
    else slot.previous.next = slot.next
    if (slot.next === undefined) this.#tail = slot.previous
    else slot.next.previous = slot.previous
    slot.queue = slot.next = slot.previous = undefined
    this.length--
    return true
  }
}

/** For clients that have had no requests yet: nothing is ever put into it. */
export const NO_SLOTS = new SlotQueue()

/** What settles the promise that was made last: one function for all of them, where each had a closure of its own. */
let resolveNew: (value: never) => void
let rejectNew: (error: unknown) => void
function settle(resolve: (value: never) => void, reject: (error: unknown) => void): void {
  resolveNew = resolve
  rejectNew = reject
}

/** A promise that the slot settles. */
export function promiseOf<T>(slot: Slot): Promise<T> {
  const promise = new Promise<T>(
    settle as (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
  )
  slot.resolve = resolveNew
  slot.reject = rejectNew
  return promise
}
