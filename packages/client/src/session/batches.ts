import { ErrorCode, OpCode, type Reader, type Writer } from '@zabra/protocol'
import { errorOf } from '../errors.ts'
import { getData } from '../kinds.ts'
import type { SessionOptions } from './options.ts'
import type { Slot, SlotQueue } from './slot.ts'
import { everyonesCodes, zxidOf } from './verdicts.ts'
import type { Wire } from './wire.ts'

/** A batch is made such that its answer has about so many bytes at most, as far as the answers before it tell. */
const ANSWER = 256 * 1024
/** What a read is taken to bring before any was answered: as much as lets a batch of the usual length through. */
const FIRST_GUESS = 4096
/** The largest answer is forgotten by such a share with each read that brings less. */
const FORGETS = 1 / 64
/** When so many connections in a row broke while a batch was next to be answered, batches may be what breaks them. */
const LOSSES = 3
/** Longest batch in bytes: paths may be long. */
const REQUEST = 64 * 1024
/** The header of a part, and the one behind the last: type, done, error. */
const HEADER = 9
/** What an answer to one read has beside the header and the data: their length and the Stat. */
const AROUND_DATA = 72

/** What becomes of the requests of a batch. */
export interface BatchOwner {
  resolvePart(slot: Slot, value: unknown, end: { bytes: number; zxid?: bigint }): void
  refused(slot: Slot, code: number, order: number): void
  mayRetry(slot: Slot): boolean
}

/** The session whose requests they are. */
export interface BatchSession {
  nextOrder(): number
  moved(): void
}

/** The answer to a batch, all of whose parts were read. */
export interface BatchAnswer {
  readonly xid: number
  readonly zxid: bigint
}

/**
 * Reads that leave together: a plain `getData` that directly follows another one in what is still to be written joins it
 * in one `multiRead`. The frame that was written last grows, so nothing waits for anything, and what stands between two
 * reads keeps them apart. The slots of a batch wait for the one answer next to each other, with the same xid.
 */
export class Batches {
  readonly #session: BatchSession
  readonly #most: number
  readonly #longest: number
  readonly #answer: number
  #stopped = false
  #losses = 0
  /** Bytes that a read may well bring: the largest answer of late. */
  #size = FIRST_GUESS
  // The frame that was written last, if it holds nothing but reads: where it stands, and who is in it.
  #wire: Wire | undefined
  #first!: Slot
  #flushes = 0
  #start = 0
  #end = 0
  #count = 0

  constructor({ batchReads, maxRequest, maxFrame }: SessionOptions, session: BatchSession) {
    this.#session = session
    this.#most = batchReads
    this.#longest = Math.min(maxRequest, REQUEST)
    this.#answer = Math.min(ANSWER, maxFrame / 2)
  }

  /** Another session may be with another server. */
  startAnew(): void {
    this.#stopped = false
    this.#losses = 0
  }

  /** The connection broke before the answer to a batch that was next to be answered. */
  lost(): void {
    if (++this.#losses >= LOSSES) this.#stopped = true
  }

  /** A request was written in a frame of its own, which begins at `start`: if it is a plain read, others may join it. */
  open(slot: Slot, wire: Wire, start: number): void {
    if (slot.kind !== getData || slot.alone || this.#stopped) return
    this.#wire = wire
    this.#first = slot
    this.#flushes = wire.flushes
    this.#start = start
    this.#end = wire.writer.length
    this.#count = 1
  }

  /** Adds a request to the frame that was written last. False when it needs one of its own. */
  join(slot: Slot, wire: Wire): boolean {
    if (slot.kind !== getData || slot.alone || this.#stopped || !this.#takes(slot, wire)) return false
    const { writer } = wire
    if (this.#count === 1) this.#widen(writer)
    else writer.truncate(this.#end - HEADER)
    const before = writer.length
    writePart(writer, slot)
    slot.bytes = writer.length - before
    slot.xid = this.#first.xid
    slot.batched = true
    this.#count++
    this.#close(writer)
    return true
  }

  #takes({ path }: Slot, wire: Wire): boolean {
    // Three bytes a unit is the most that a path can take.
    return (
      wire === this.#wire &&
      wire.flushes === this.#flushes &&
      wire.writer.length === this.#end &&
      this.#count < this.#most &&
      (this.#count + 1) * this.#size <= this.#answer &&
      this.#end - this.#start + 3 * HEADER + 5 + 3 * path.length <= this.#longest
    )
  }

  /** Makes a batch of one of the read that went before. */
  #widen(writer: Writer): void {
    const first = this.#first
    writer.truncate(this.#start)
    writer.beginFrame()
    writer.int(first.xid)
    writer.int(OpCode.multiRead)
    writePart(writer, first)
    first.bytes = writer.length - this.#start + HEADER
    first.batched = true
  }

  #close(writer: Writer): void {
    writeHeader(writer, -1, true)
    writer.endFrame(this.#start)
    this.#end = writer.length
  }

  /** A request was answered by itself. */
  single(slot: Slot, bytes: number): void {
    if (slot.kind === getData) this.#measure(bytes)
  }

  #measure(bytes: number): void {
    this.#size = Math.max(bytes, this.#size * (1 - FORGETS))
  }

  /**
   * Reads the answer to a batch into its slots: what was read into `extra`, the error or 0 into `number`. All of it before
   * anybody hears of anything: whoever waits for a part of a malformed answer asks again, alone.
   */
  read(reader: Reader, first: Slot): BatchAnswer {
    const { xid } = first
    for (let slot: Slot | undefined = first; slot?.xid === xid; slot = slot.next) {
      const type = reader.int()
      const done = reader.bool()
      reader.int()
      if (done) malformed(reader, 'a result for each read of a batch, got fewer')
      if (type === OpCode.getData) {
        slot.number = 0
        slot.extra = slot.kind.decode(reader, slot, this.#session.nextOrder())
      } else if (type === OpCode.error) slot.number = errorPart(reader)
      else malformed(reader, `the result of a read, got one of type ${type}`)
    }
    reader.int()
    if (!reader.bool()) malformed(reader, 'a result for each read of a batch, got more')
    this.#losses = 0
    return { xid, zxid: zxidOf(reader) }
  }

  /** Settles the requests of a batch, the first of those in flight, with what was read into them. */
  settle(inFlight: SlotQueue, { xid, zxid }: BatchAnswer, owner: BatchOwner): void {
    // Who hears of one may end the client, or break the connection: then the others are no longer in flight.
    for (let slot = inFlight.head; slot?.xid === xid; slot = inFlight.head) {
      inFlight.shift()
      const { number: code, extra: value } = slot
      separate(slot)
      if (code !== 0) owner.refused(slot, code, 0)
      else {
        const bytes = HEADER + AROUND_DATA + (value as { data: Uint8Array }).data.length
        this.#measure(bytes)
        owner.resolvePart(slot, value, { bytes, zxid })
      }
    }
  }

  /**
   * The first batch in flight was answered with an error. What says something of the session is the error of each. All
   * else is about the batch: its reads leave alone on the next connection, in their place among the others, and no more
   * batches are made. For that it throws, which ends the connection.
   */
  refused(inFlight: SlotQueue, code: number, owner: BatchOwner): void {
    const { xid } = inFlight.head!
    const moved = code === ErrorCode.SESSIONMOVED
    const kept: Slot[] = []
    for (let slot = inFlight.head; slot?.xid === xid; slot = inFlight.head) {
      inFlight.shift()
      separate(slot)
      if (moved ? !owner.mayRetry(slot) : everyonesCodes.has(code)) owner.refused(slot, code, 0)
      else kept.push(slot)
    }
    if (kept.length === 0) return
    for (const slot of kept.toReversed()) {
      slot.xid = 0
      if (!moved) forgive(slot)
      inFlight.unshift(slot)
    }
    if (moved) return this.#session.moved()
    this.#stopped = true
    const { message } = errorOf(code, { operation: 'multiRead' })
    throw new Error(
      `${message}: the reads of this session leave one by one from now on, as without batchReads`,
    )
  }
}

function malformed(reader: Reader, expected: string): never {
  return reader.fail(`Expected ${expected}`, 'a batch of reads')
}

function errorPart(reader: Reader): number {
  const code = reader.int()
  return code === 0 ? malformed(reader, 'the error of a read, got 0') : code
}

/** It has had its try together with others, and leaves alone from now on. */
export function separate(slot: Slot): void {
  if (!slot.batched) return
  slot.batched = false
  slot.alone = true
  slot.number = 0
  slot.extra = undefined
}

/** The try did not fail by what the read itself asked for, so it was none. */
export function forgive(slot: Slot): void {
  if (!slot.abandoned) slot.attempts = 0
}

function writePart(writer: Writer, slot: Slot): void {
  writeHeader(writer, OpCode.getData, false)
  slot.kind.encode(writer, slot)
}

function writeHeader(writer: Writer, type: number, done: boolean): void {
  writer.int(type)
  writer.bool(done)
  writer.int(-1)
}
