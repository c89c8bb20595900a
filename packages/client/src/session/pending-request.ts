import type { Reader, Writer } from '@zabra/protocol'
import type { Cancel } from '@zabra/runtime'
import type { ErrorContext, ZooKeeperError } from '../errors.ts'
import type { RequestEndCallback } from '../instrumentation.ts'
import type { Bytes, CallOptions } from '../types.ts'

/** The captured stack of a call. */
export interface CallSite {
  stack?: string | undefined
}

/** The arguments of a request that are encoded. */
export type RequestArguments = Pick<
  PendingRequest,
  'path' | 'data' | 'intArgument' | 'ttl' | 'watch' | 'params'
>

/** A type of request: how it is encoded and decoded, and how its errors are handled. */
export interface Operation {
  readonly name: string
  /** Op code of the protocol. */
  readonly opCode: number
  /** Whether the operation is a write: a successful reply proves a commit, see `lease.ts`. */
  readonly isWrite: boolean
  /** Returns the server path that a `NONODE` error refers to. */
  requiredPath?(request: PendingRequest): string
  encode(writer: Writer, request: RequestArguments): void
  /** Decodes the reply of a successful request. `reader` is positioned after the header. */
  decode(reader: Reader, request: PendingRequest, order: number): unknown
  /** Returns whether a retry is safe when the outcome of the first try is unknown. */
  isIdempotent(request: PendingRequest): boolean
  /** Returns the result for an error that is a valid outcome, such as a missing znode for `exists`. */
  recover?(request: PendingRequest, code: number, order: number): { readonly value: unknown } | undefined
  /** Called when a reply arrives, with `code` 0 or an error, before the promise settles. */
  onReply?(request: PendingRequest, code: number): void
  /** Called when no reply will arrive: the session or the client has ended, or the request failed for good. */
  onDrop?(request: PendingRequest): void
  /**
   * Handles an error reply to a retry, which may be the result of the first try having succeeded. Returns true if it
   * takes over and settles the request, now or later.
   */
  resolveAmbiguous?(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean
  /** Handles an error reply that another read explains. Returns true if it takes over and rejects the request later. */
  explainError?(request: PendingRequest, code: number, resolver: AmbiguityResolver): boolean
}

/** What `Operation.resolveAmbiguous` uses to find out whether the first try was applied, and to settle the request. */
export interface AmbiguityResolver {
  readonly sessionId: bigint
  acquire(operation: Operation): PendingRequest
  submit<T>(request: PendingRequest): Promise<T>
  errorContext(request: PendingRequest): ErrorContext
  resolveTakenOver(request: PendingRequest, value: unknown): void
  rejectTakenOver(request: PendingRequest, error: ZooKeeperError): void
}

const ignore = (): void => {}

/**
 * A request from call to reply.
 *
 * Optimised: objects are pooled, with plain fields that only some operations use.
 * Why: a busy client makes a hundred thousand requests a second, and an object with closures for each of them would
 * dominate garbage collection.
 * Rules: only `RequestDispatcher` acquires and releases them; no other code keeps a reference after the promise has
 * settled.
 */
export class PendingRequest {
  operation!: Operation
  /** Server path. */
  path = ''
  /** The chroot that the path was mapped with. */
  chroot = ''
  data: Bytes | null = null
  /** A version, create flags or a watch mode. */
  intArgument = 0
  /** Time to live in milliseconds. */
  ttl = 0
  watch = false
  /** Other parameters of the operation. */
  params: unknown
  options: CallOptions | undefined
  /** A write that a failed write before it does not fail, and that fails none behind it. */
  isUnordered = false
  resolve: (value: never) => void = ignore
  reject: (error: ZooKeeperError) => void = ignore

  xid = 0
  /** Monotonic milliseconds of the call, and a lower bound for the time when the last try was sent. */
  startedAt = 0
  sentAt = 0
  requestBytes = 0
  attempts = 0
  /** Milliseconds before the next attempt, where a function of the caller decides. */
  retryDelayMs = 0
  /** An earlier try was sent and got no reply. */
  isAmbiguous = false
  /** The caller has given up; the reply is awaited only to keep the order. */
  isAbandoned = false
  /** Number of connection losses at which it was first in flight. */
  headLosses = 0
  /** Sent in a batch, whose requests share one xid. */
  isBatched = false
  /** Always sent in a frame of its own. */
  sendsAlone = false
  /** `flushCount` of the connection when the request was written. */
  flushesBefore = 0
  /** Whether a listener is registered on the signal of its caller. */
  stopListening: (() => void) | undefined
  cancelTimer: Cancel | undefined
  cancelRetry: Cancel | undefined
  onEnd: RequestEndCallback | undefined
  callSite: CallSite | undefined
  list: RequestList | undefined
  next: PendingRequest | undefined
  previous: PendingRequest | undefined

  /** Clears all references, so that a pooled request keeps no memory alive. */
  clear(): void {
    this.path = ''
    this.chroot = ''
    this.data = null
    this.intArgument = 0
    this.ttl = 0
    this.watch = false
    this.params = undefined
    this.options = undefined
    this.isUnordered = false
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

/** Takes a request out of its batch. If it is sent again, it gets a frame of its own. */
export function leaveBatch(request: PendingRequest): void {
  if (!request.isBatched) return
  request.isBatched = false
  request.sendsAlone = true
  request.intArgument = 0
  request.params = undefined
}

/** Resets the attempts of a request that failed through no fault of its own. */
export function resetAttempts(request: PendingRequest): void {
  if (!request.isAbandoned) request.attempts = 0
}

/**
 * A doubly linked list through the requests themselves, so that moving one allocates nothing. A request is in at most
 * one list.
 */
export class RequestList {
  #head: PendingRequest | undefined
  #tail: PendingRequest | undefined
  length = 0

  get head(): PendingRequest | undefined {
    return this.#head
  }

  push(request: PendingRequest): void {
    request.list = this
    request.next = undefined
    request.previous = this.#tail
    if (this.#tail === undefined) this.#head = request
    else this.#tail.next = request
    this.#tail = request
    this.length++
  }

  /** Inserts a request at the front. */
  unshift(request: PendingRequest): void {
    request.list = this
    request.previous = undefined
    request.next = this.#head
    if (this.#head === undefined) this.#tail = request
    else this.#head.previous = request
    this.#head = request
    this.length++
  }

  shift(): PendingRequest | undefined {
    const request = this.#head
    if (request !== undefined) this.remove(request)
    return request
  }

  /** Removes and returns all requests, in order. */
  drain(): PendingRequest[] {
    const requests: PendingRequest[] = []
    for (let request = this.shift(); request !== undefined; request = this.shift()) requests.push(request)
    return requests
  }

  /** Returns false if the request is not in this list. */
  remove(request: PendingRequest): boolean {
    if (request.list !== this) return false
    if (request.previous === undefined) this.#head = request.next
    else request.previous.next = request.next
    if (request.next === undefined) this.#tail = request.previous
    else request.next.previous = request.previous
    request.list = request.next = request.previous = undefined
    this.length--
    return true
  }
}

/** The empty list of clients that have not made a request yet; it stays empty. */
export const EMPTY_REQUEST_LIST = new RequestList()

/**
 * The resolvers of the promise created last: one shared function captures them, instead of a closure for each
 * request.
 */
let resolveNew: (value: never) => void
let rejectNew: (error: unknown) => void
function captureResolvers(resolve: (value: never) => void, reject: (error: unknown) => void): void {
  resolveNew = resolve
  rejectNew = reject
}

/** Creates a promise that the request settles. */
export function createPromise<T>(request: PendingRequest): Promise<T> {
  const promise = new Promise<T>(
    captureResolvers as (resolve: (value: T) => void, reject: (error: unknown) => void) => void,
  )
  request.resolve = resolveNew
  request.reject = rejectNew
  return promise
}
