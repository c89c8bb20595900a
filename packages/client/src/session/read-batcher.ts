import { ErrorCode, OpCode, type Reader, type Writer } from '@zabra/protocol'
import { errorFromCode } from '../errors.ts'
import { getData } from '../operations.ts'
import type { SessionOptions } from './options.ts'
import type { PendingRequest, RequestList } from './pending-request.ts'
import { connectionWideCodes, readReplyZxid } from './error-codes.ts'
import type { FramedConnection } from './framed-connection.ts'

/** A batch is made such that its answer has about so many bytes at most, as far as the answers before it tell. */
const MAX_REPLY_BYTES = 256 * 1024
/** What a read is taken to bring before any was answered: as much as lets a batch of the usual length through. */
const INITIAL_READ_BYTES = 4096
/** The largest answer is forgotten by such a share with each read that brings less. */
const SIZE_DECAY = 1 / 64
/** When so many connections in a row broke while a batch was next to be answered, batches may be what breaks them. */
const MAX_CONNECTION_LOSSES = 3
/** Longest batch in bytes: paths may be long. */
const MAX_REQUEST_BYTES = 64 * 1024
/** The header of a part, and the one behind the last: type, done, error. */
const HEADER_BYTES = 9
/** What an answer to one read has beside the header and the data: their length and the Stat. */
const REPLY_OVERHEAD_BYTES = 72

/** What becomes of the requests of a batch. */
export interface BatchCallbacks {
  resolveBatched(slot: PendingRequest, value: unknown, end: { bytes: number; zxid?: bigint }): void
  onErrorReply(slot: PendingRequest, code: number, order: number): void
  mayRetry(slot: PendingRequest): boolean
}

/** The session whose requests they are. */
export interface BatchSession {
  nextOrder(): number
  onSessionMoved(): void
}

/** The answer to a batch, all of whose parts were read. */
export interface BatchReply {
  readonly xid: number
  readonly zxid: bigint
}

/**
 * Reads that leave together: a plain `getData` that directly follows another one in what is still to be written joins it
 * in one `multiRead`. The frame that was written last grows, so nothing waits for anything, and what stands between two
 * reads keeps them apart. The slots of a batch wait for the one answer next to each other, with the same xid.
 */
export class ReadBatcher {
  readonly #session: BatchSession
  readonly #maxReads: number
  readonly #maxRequestBytes: number
  readonly #maxReplyBytes: number
  #isStopped = false
  #lossesInRow = 0
  /** Bytes that a read may well bring: the largest answer of late. */
  #expectedReadBytes = INITIAL_READ_BYTES
  // The frame that was written last, if it holds nothing but reads: where it stands, and who is in it.
  #wire: FramedConnection | undefined
  #first!: PendingRequest
  #flushes = 0
  #start = 0
  #end = 0
  #count = 0

  constructor({ batchReads, maxRequest, maxFrame }: SessionOptions, session: BatchSession) {
    this.#session = session
    this.#maxReads = batchReads
    this.#maxRequestBytes = Math.min(maxRequest, MAX_REQUEST_BYTES)
    this.#maxReplyBytes = Math.min(MAX_REPLY_BYTES, maxFrame / 2)
  }

  /** Another session may be with another server. */
  reset(): void {
    this.#isStopped = false
    this.#lossesInRow = 0
  }

  /** The connection broke before the answer to a batch that was next to be answered. */
  onConnectionLoss(): void {
    if (++this.#lossesInRow >= MAX_CONNECTION_LOSSES) this.#isStopped = true
  }

  /** A request was written in a frame of its own, which begins at `start`: if it is a plain read, others may join it. */
  begin(slot: PendingRequest, wire: FramedConnection, start: number): void {
    if (slot.operation !== getData || slot.sendsAlone || this.#isStopped) return
    this.#wire = wire
    this.#first = slot
    this.#flushes = wire.flushCount
    this.#start = start
    this.#end = wire.writer.length
    this.#count = 1
  }

  /** Adds a request to the frame that was written last. False when it needs one of its own. */
  tryAppend(slot: PendingRequest, wire: FramedConnection): boolean {
    if (slot.operation !== getData || slot.sendsAlone || this.#isStopped || !this.#hasRoom(slot, wire))
      return false
    const { writer } = wire
    if (this.#count === 1) this.#convertToBatch(writer)
    else writer.truncate(this.#end - HEADER_BYTES)
    const before = writer.length
    writePart(writer, slot)
    slot.requestBytes = writer.length - before
    slot.xid = this.#first.xid
    slot.isBatched = true
    this.#count++
    this.#writeEnd(writer)
    return true
  }

  #hasRoom({ path }: PendingRequest, wire: FramedConnection): boolean {
    // Three bytes a unit is the most that a path can take.
    return (
      wire === this.#wire &&
      wire.flushCount === this.#flushes &&
      wire.writer.length === this.#end &&
      this.#count < this.#maxReads &&
      (this.#count + 1) * this.#expectedReadBytes <= this.#maxReplyBytes &&
      this.#end - this.#start + 3 * HEADER_BYTES + 5 + 3 * path.length <= this.#maxRequestBytes
    )
  }

  /** Makes a batch of one of the read that went before. */
  #convertToBatch(writer: Writer): void {
    const first = this.#first
    writer.truncate(this.#start)
    writer.beginFrame()
    writer.int(first.xid)
    writer.int(OpCode.multiRead)
    writePart(writer, first)
    first.requestBytes = writer.length - this.#start + HEADER_BYTES
    first.isBatched = true
  }

  #writeEnd(writer: Writer): void {
    writeHeader(writer, -1, true)
    writer.endFrame(this.#start)
    this.#end = writer.length
  }

  /** A request was answered by itself. */
  onSingleReply(slot: PendingRequest, bytes: number): void {
    if (slot.operation === getData) this.#measure(bytes)
  }

  #measure(bytes: number): void {
    this.#expectedReadBytes = Math.max(bytes, this.#expectedReadBytes * (1 - SIZE_DECAY))
  }

  /**
   * Reads the answer to a batch into its slots: what was read into `extra`, the error or 0 into `number`. All of it before
   * anybody hears of anything: whoever waits for a part of a malformed answer asks again, alone.
   */
  read(reader: Reader, first: PendingRequest): BatchReply {
    const { xid } = first
    for (let slot: PendingRequest | undefined = first; slot?.xid === xid; slot = slot.next) {
      const type = reader.int()
      const done = reader.bool()
      reader.int()
      if (done) malformed(reader, 'a result for each read of a batch, got fewer')
      if (type === OpCode.getData) {
        slot.intArgument = 0
        slot.params = slot.operation.decode(reader, slot, this.#session.nextOrder())
      } else if (type === OpCode.error) slot.intArgument = readErrorPart(reader)
      else malformed(reader, `the result of a read, got one of type ${type}`)
    }
    reader.int()
    if (!reader.bool()) malformed(reader, 'a result for each read of a batch, got more')
    this.#lossesInRow = 0
    return { xid, zxid: readReplyZxid(reader) }
  }

  /** Settles the requests of a batch, the first of those in flight, with what was read into them. */
  settle(inFlight: RequestList, { xid, zxid }: BatchReply, owner: BatchCallbacks): void {
    // Who hears of one may end the client, or break the connection: then the others are no longer in flight.
    for (let slot = inFlight.head; slot?.xid === xid; slot = inFlight.head) {
      inFlight.shift()
      const { intArgument: code, params: value } = slot
      leaveBatch(slot)
      if (code !== 0) owner.onErrorReply(slot, code, 0)
      else {
        const bytes = HEADER_BYTES + REPLY_OVERHEAD_BYTES + (value as { data: Uint8Array }).data.length
        this.#measure(bytes)
        owner.resolveBatched(slot, value, { bytes, zxid })
      }
    }
  }

  /**
   * The first batch in flight was answered with an error. What says something of the session is the error of each. All
   * else is about the batch: its reads leave alone on the next connection, in their place among the others, and no more
   * batches are made. For that it throws, which ends the connection.
   */
  onErrorReply(inFlight: RequestList, code: number, owner: BatchCallbacks): void {
    const { xid } = inFlight.head!
    const moved = code === ErrorCode.SESSIONMOVED
    const kept: PendingRequest[] = []
    for (let slot = inFlight.head; slot?.xid === xid; slot = inFlight.head) {
      inFlight.shift()
      leaveBatch(slot)
      if (moved ? !owner.mayRetry(slot) : connectionWideCodes.has(code)) owner.onErrorReply(slot, code, 0)
      else kept.push(slot)
    }
    if (kept.length === 0) return
    for (const slot of kept.toReversed()) {
      slot.xid = 0
      if (!moved) resetAttempts(slot)
      inFlight.unshift(slot)
    }
    if (moved) return this.#session.onSessionMoved()
    this.#isStopped = true
    const { message } = errorFromCode(code, { operation: 'multiRead' })
    throw new Error(
      `${message}: the reads of this session leave one by one from now on, as without batchReads`,
    )
  }
}

function malformed(reader: Reader, expected: string): never {
  return reader.fail(`Expected ${expected}`, 'a batch of reads')
}

function readErrorPart(reader: Reader): number {
  const code = reader.int()
  return code === 0 ? malformed(reader, 'the error of a read, got 0') : code
}

/** It has had its try together with others, and leaves alone from now on. */
export function leaveBatch(slot: PendingRequest): void {
  if (!slot.isBatched) return
  slot.isBatched = false
  slot.sendsAlone = true
  slot.intArgument = 0
  slot.params = undefined
}

/** The try did not fail by what the read itself asked for, so it was none. */
export function resetAttempts(slot: PendingRequest): void {
  if (!slot.isAbandoned) slot.attempts = 0
}

function writePart(writer: Writer, slot: PendingRequest): void {
  writeHeader(writer, OpCode.getData, false)
  slot.operation.encode(writer, slot)
}

function writeHeader(writer: Writer, type: number, done: boolean): void {
  writer.int(type)
  writer.bool(done)
  writer.int(-1)
}
