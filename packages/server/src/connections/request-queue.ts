import { ErrorCode, OpCode, type BufferPool, type PooledBuffer, type Reader } from '@zabra/protocol'
import { ATTACHED_BYTES } from '../core/operations/index.ts'
import { CHUNK_THRESHOLD } from '../core/reads/index.ts'
import { RingBuffer } from '../core/ring-buffer.ts'
import type { Identity } from '../core/types.ts'
import { LineCounts } from './line-counts.ts'
import type { PipelineRoom } from './pipeline-room.ts'

const NO_IDENTITIES: readonly Identity[] = []

/** The header of a request. */
export interface RequestHeader {
  readonly xid: number
  readonly type: number
  /** When the request was received, on the monotonic clock. */
  readonly startedAt: number
}

/** What is reported of a request that waited, if it was slow. */
export interface RequestArrival {
  /** Bytes of the request with its header. */
  readonly requestBytes: number
  /** Requests of its session without a reply, when it arrived. */
  readonly ahead: number
  /** Writes of this server's clients without a reply, when it arrived. */
  readonly outstanding: number
  /** Requests and transactions, those of other servers included, that waited to be prepared, committed or applied, when it arrived. */
  readonly transactions: number
}

/**
 * A request without a reply. With a `body` it is deferred: a read behind a write, or any request of a client that applies
 * backpressure. With an `err` it is a refused write. With neither it is in flight.
 */
export class QueuedRequest implements RequestHeader, RequestArrival {
  readonly xid: number
  readonly type: number
  readonly startedAt: number
  /** The error of a refused request, else 0. */
  readonly err: number
  /** The array that holds the body of a deferred request, from `from` to `to`. */
  body: Uint8Array | undefined = undefined
  from = 0
  to = 0
  /** The identities of the client when it sent a deferred request. */
  readonly identities: readonly Identity[]
  /** Whether a deferred request can be in flight before its turn to get a reply, as a write or a sync can. */
  readonly canStartEarly: boolean
  /** The body of a sync in flight, for its reply. */
  syncBody: Uint8Array | undefined = undefined
  /** As how many small reads a deferred read counts. */
  weight = 1
  /** Bytes that the pipeline holds while the request is in flight: those of the request, and of the identities that go with it. */
  pipelineBytes = 0
  // See `RequestArrival`.
  requestBytes = 0
  ahead = 0
  outstanding = 0
  transactions = 0

  constructor(
    xid: number,
    type: number,
    startedAt: number,
    err: number = ErrorCode.OK,
    identities = NO_IDENTITIES,
    canStartEarly = false,
  ) {
    this.xid = xid
    this.type = type
    this.startedAt = startedAt
    this.err = err
    this.identities = identities
    this.canStartEarly = canStartEarly
  }

  /**
   * Notes the bytes of the request, and how long the queues were at its arrival. In fields, since an object of their own would cost
   * every write.
   */
  arrived(requestBytes: number, ahead: number, outstanding: number, transactions: number): this {
    this.requestBytes = requestBytes
    this.ahead = ahead
    this.outstanding = outstanding
    this.transactions = transactions
    return this
  }

  /**
   * Notes what the pipeline holds of a request that was submitted, beside its bytes: nothing of one that is refused, or that has nothing to
   * wait for.
   */
  started(identityBytes: number): this {
    if (!isWaiting(this)) this.pipelineBytes = this.requestBytes + identityBytes
    return this
  }

  /** Takes over what was noted at the arrival of the request that it replaces. */
  arrivedAs({ requestBytes, ahead, outstanding, transactions }: RequestArrival): this {
    return this.arrived(requestBytes, ahead, outstanding, transactions)
  }

  /** Sets a body that fills its array. */
  setBody(body: Uint8Array): void {
    this.body = body
    this.to = body.length
  }

  /** Positions a reader at the body. */
  readBody(reader: Reader): Reader {
    return reader.reset(this.body!, this.from, this.to)
  }
}

/**
 * Returns the request that replaces a deferred sync once the pipeline has accepted or refused it. It is in flight when `err` is
 * undefined, deferred as a read when `err` is 0 because there is nothing to wait for, and else refused.
 */
export function startedSync(sync: QueuedRequest, err: number | undefined): QueuedRequest {
  const { xid, type, startedAt, identities, body, from, to } = sync
  const started = new QueuedRequest(xid, type, startedAt, err, identities).arrivedAs(sync)
  const bytes = body!.slice(from, to)
  if (err === undefined) started.syncBody = bytes
  else if (err === ErrorCode.OK) started.setBody(bytes)
  return started
}

/** Bodies are packed into buffers of the pool: the first is small, since most queues are short. */
const FIRST_BUFFER_BYTES = 512
const BUFFER_BYTES = 4096
/** A longer body has an array of its own. */
const MAX_PACKED_BYTES = 1024
/** Memory of a request beside its body, in bytes. */
const REQUEST_BYTES = 200

/** A request with a longer body may be costly. */
const COSTLY_BYTES = 65_536

/** Reads that take a step for each of thousands of children or ephemerals, also where the reply is short. */
const LISTS: ReadonlySet<number> = new Set([
  OpCode.getChildren,
  OpCode.getChildren2,
  OpCode.getAllChildrenNumber,
  OpCode.getEphemerals,
])
/** Whether a request is one that lists or counts znodes. */
export const isList = (type: number): boolean => LISTS.has(type)

/** Whether a request may take a large part of a turn: a multiRead, whose replies have up to 8 MiB, and any request of many parts. */
export const isCostly = (type: number, bytes: number): boolean =>
  type === OpCode.multiRead || bytes > COSTLY_BYTES

/**
 * Deferred reads behind which no write is started. Reads before a write that is in flight are executed at once when it is their turn, so
 * that none of them sees what the write changes.
 */
const MAX_READS_BEFORE_WRITE = 64
/** As how many small reads a costly one counts at least, and a list. */
const COSTLY_READS = 16
/** Bytes of data that count as a small read: 64 of them are copied in a millisecond or two. */
const BYTES_OF_READ = 65_536
/** The fewest bytes of a part of a multiRead: its header, a path of one character, whether it watches. */
const BYTES_OF_PART = 15
/** Bytes of parts, or of watches to restore, that count as a small read: 64 of them take some milliseconds. */
const BYTES_OF_PARTS = 512

/**
 * Returns as how many small reads a deferred one counts. Clients send small multiReads and lists too, behind which writes are started.
 * A multiRead counts by the data that its parts may copy. The reply to a getData is known to be small only in a tree in which all data are, and that to a list only where all lists are; no
 * write is started behind a list that may be long, or behind a count or list that any number of znodes may belong to.
 */
export function weightOf(
  type: number,
  bytes: number,
  { largestData, mostChildren }: { readonly largestData: number; readonly mostChildren: number },
): number {
  if (type === OpCode.getData) return 1 + Math.floor(largestData / BYTES_OF_READ)
  if (type === OpCode.getAllChildrenNumber || type === OpCode.getEphemerals) return MAX_READS_BEFORE_WRITE + 1
  if (isList(type) && mostChildren > CHUNK_THRESHOLD) return MAX_READS_BEFORE_WRITE + 1
  if (type === OpCode.multiRead) {
    const copied = (bytes / BYTES_OF_PART) * Math.min(largestData, ATTACHED_BYTES)
    return Math.max(COSTLY_READS, Math.floor(copied / BYTES_OF_READ), Math.floor(bytes / BYTES_OF_PARTS))
  }
  if (type === OpCode.setWatches || type === OpCode.setWatches2) return 1 + Math.floor(bytes / BYTES_OF_PARTS)
  return isCostly(type, bytes) || isList(type) ? COSTLY_READS : 1
}

/**
 * Bytes of writes and syncs in flight at which a connection starts no more. A follower forwards each with the identities of its client, up
 * to 48 KB, and loses its leader when that has not read 128 MiB; a leader gives up followers that have not read as much.
 */
const MAX_PIPELINE_BYTES = 1 << 19

/** The requests of one session without a reply, in order. */
export class RequestQueue {
  readonly #pool: BufferPool
  readonly #room: Pick<PipelineRoom, 'take' | 'release'>
  readonly #counts: LineCounts
  /** The buffer for the next body, and how many of its bytes are used. */
  #buffer: PooledBuffer | undefined
  #used = 0
  /** The first buffer since the queue was empty, when it is full. */
  #fullBuffer: PooledBuffer | undefined
  readonly #requests = new RingBuffer<QueuedRequest | undefined>(undefined)
  /** No request before this index is a deferred write or sync. */
  #firstDeferredIndex = 0
  /** Deferred writes and syncs. */
  deferredCount = 0
  #deferredReads = 0
  /** Requests that are not in flight. */
  #waiting = 0
  /** Syncs in flight. Requests behind one are not started, except for other syncs: they may rely on what the sync makes visible. */
  pendingSyncs = 0
  #bodyBytes = 0
  /** The sum of `pipelineBytes`. */
  #pipelineBytes = 0
  /** The `pipelineBytes` of the requests in flight of a closed connection. */
  readonly #abandoned = new RingBuffer(0)

  /** Takes the buffers of deferred bodies from `pool`. Requests in flight take `room`; `counts` has the requests of all sessions. */
  constructor(pool: BufferPool, room: Pick<PipelineRoom, 'take' | 'release'>, counts = new LineCounts()) {
    this.#pool = pool
    this.#room = room
    this.#counts = counts
  }

  get length(): number {
    return this.#requests.length
  }

  /** The memory of the queue in bytes, approximately. */
  get byteSize(): number {
    return this.#bodyBytes + this.length * REQUEST_BYTES
  }

  /** Whether a write or a sync waits for its result. */
  get hasInFlight(): boolean {
    return this.length > this.#waiting
  }

  get first(): QueuedRequest | undefined {
    return this.#requests.first
  }

  /** Whether there is nothing to process: no request, or only such as are in flight. */
  get isIdle(): boolean {
    return this.#waiting === 0 && this.#buffer === undefined
  }

  /** Whether the first request can be processed: it is not in flight. */
  get isReady(): boolean {
    const { first } = this
    return first !== undefined && isWaiting(first)
  }

  /** The oldest deferred write or sync. */
  get firstDeferred(): QueuedRequest | undefined {
    if (this.deferredCount === 0) return undefined
    while (!isDeferredWrite(this.#requests.at(this.#firstDeferredIndex)!)) this.#firstDeferredIndex++
    return this.#requests.at(this.#firstDeferredIndex)
  }

  /** Whether a new write, or else a new sync, can be started although it is behind all others. */
  canStart(isWrite: boolean): boolean {
    return this.deferredCount === 0 && this.#hasRoom() && (!isWrite || this.pendingSyncs === 0)
  }

  /** Whether the oldest deferred write or sync can be started. */
  get canStartDeferred(): boolean {
    const { firstDeferred } = this
    if (!this.#hasRoom()) return false
    return firstDeferred !== undefined && (this.pendingSyncs === 0 || firstDeferred.type === OpCode.sync)
  }

  /** Whether one more write or sync may be in flight. */
  #hasRoom(): boolean {
    return this.#deferredReads <= MAX_READS_BEFORE_WRITE && this.#pipelineBytes < MAX_PIPELINE_BYTES
  }

  push(request: QueuedRequest): void {
    this.#counts.joined++
    if (this.length === 0) this.#counts.begun++
    this.#requests.push(request)
    this.#count(request)
  }

  /** Appends a deferred request and copies its body. */
  pushDeferred(request: QueuedRequest, bytes: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (length > MAX_PACKED_BYTES) {
      // Not `slice`, which returns a view where `bytes` is a Buffer of Node.
      request.setBody(new Uint8Array(bytes.subarray(start, end)))
    } else {
      if (this.#buffer === undefined || this.#used + length > this.#buffer.bytes.length) {
        const size = this.#buffer === undefined ? FIRST_BUFFER_BYTES : BUFFER_BYTES
        // The first full buffer is reused. Later ones are left to the requests whose bodies they hold, since a queue may never get empty.
        this.#fullBuffer ??= this.#buffer
        this.#buffer = this.#pool.acquire(Math.max(size, length))
        this.#used = 0
      }
      const target = this.#buffer.bytes
      const from = this.#used
      for (let i = 0; i < length; i++) target[from + i] = bytes[start + i]!
      request.body = target
      request.from = from
      request.to = this.#used = from + length
    }
    this.push(request)
  }

  /** Releases the buffers when the queue is empty. No body may be in use. */
  releaseBuffers(): void {
    if (this.#buffer === undefined || this.length > 0) return
    this.#pool.release(this.#buffer)
    this.#buffer = undefined
    if (this.#fullBuffer === undefined) return
    this.#pool.release(this.#fullBuffer)
    this.#fullBuffer = undefined
  }

  shift(): QueuedRequest | undefined {
    const first = this.#requests.shift()
    if (first === undefined) return undefined
    this.#uncount(first)
    this.#counts.left++
    if (this.length === 0) this.#counts.drained++
    if (this.#firstDeferredIndex > 0) this.#firstDeferredIndex--
    return first
  }

  /** Replaces the first request. Does nothing on an empty queue: the connection may have been closed meanwhile. */
  replaceFirst(request: QueuedRequest): void {
    const { first } = this
    if (first === undefined) return
    this.#uncount(first)
    this.#requests.set(0, request)
    this.#count(request)
  }

  /** Replaces the oldest deferred write or sync. Does nothing where there is none: the connection may have been closed meanwhile. */
  replaceDeferred(request: QueuedRequest): void {
    const { firstDeferred } = this
    if (firstDeferred === undefined) return
    this.#uncount(firstDeferred)
    this.#requests.set(this.#firstDeferredIndex, request)
    this.#count(request)
  }

  /** Drops all requests: the connection takes no more results. Those in flight keep their room until `releaseAbandoned`. */
  abandon(): void {
    for (let index = 0; index < this.length; index++) {
      const request = this.#requests.at(index)!
      if (!isWaiting(request)) this.#abandoned.push(request.pipelineBytes)
      else if (isDeferredRead(request)) this.#counts.reads--
    }
    this.#counts.dropped(this.length)
    this.#requests.clear()
    this.#firstDeferredIndex =
      this.deferredCount =
      this.#deferredReads =
      this.#waiting =
      this.pendingSyncs =
      this.#bodyBytes =
        0
  }

  /** Releases the room of the oldest request in flight, whose result has come too late: the connection takes none. */
  releaseAbandoned(): void {
    // A connection that is closing has not dropped its requests yet.
    this.abandon()
    this.#release(this.#abandoned.shift())
  }

  #count(request: QueuedRequest): void {
    if (isDeferredWrite(request)) this.deferredCount++
    else if (request.body !== undefined) {
      this.#deferredReads += request.weight
      this.#counts.reads++
    }
    if (isWaiting(request)) this.#waiting++
    if (request.syncBody !== undefined) this.pendingSyncs++
    this.#bodyBytes += bodyBytesOf(request)
    const { pipelineBytes } = request
    if (pipelineBytes === 0) return
    this.#pipelineBytes += pipelineBytes
    this.#room.take(pipelineBytes)
  }

  #uncount(request: QueuedRequest): void {
    if (isDeferredWrite(request)) this.deferredCount--
    else if (request.body !== undefined) {
      this.#deferredReads -= request.weight
      this.#counts.reads--
    }
    if (isWaiting(request)) this.#waiting--
    if (request.syncBody !== undefined) this.pendingSyncs--
    this.#bodyBytes -= bodyBytesOf(request)
    if (request.pipelineBytes > 0) this.#release(request.pipelineBytes)
  }

  #release(pipelineBytes: number): void {
    this.#pipelineBytes -= pipelineBytes
    this.#room.release(pipelineBytes)
  }
}

/** Whether a request is deferred or refused. */
const isWaiting = ({ body, err }: QueuedRequest): boolean => body !== undefined || err !== ErrorCode.OK
/** Whether a request is a deferred write or sync. */
const isDeferredWrite = ({ body, canStartEarly }: QueuedRequest): boolean =>
  canStartEarly && body !== undefined
const isDeferredRead = ({ body, canStartEarly }: QueuedRequest): boolean =>
  !canStartEarly && body !== undefined
const bodyBytesOf = ({ from, to, syncBody }: QueuedRequest): number =>
  to - from + (syncBody === undefined ? 0 : syncBody.length)
