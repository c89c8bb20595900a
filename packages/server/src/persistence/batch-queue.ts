import { Writer } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import { writeLogHeader } from './log-format.ts'

/** Encoded entries that are written to the disk in one durable write. */
export interface Batch {
  readonly writer: Writer
  /** Whether the batch is the beginning of a new file; its first bytes are the file's header then. */
  readonly startsFile: boolean
  readonly first: Zxid
  last: Zxid
  count: number
}

/** A batch of this many bytes is closed, so that a single write takes a short time. */
const MAX_BATCH_BYTES = 4 << 20
const REUSED_BUFFERS = 2
const MAX_REUSED_BYTES = 1 << 20

/**
 * Collects entries into batches. Entries are encoded straight into the buffer of the newest batch and the buffers of written
 * batches are reused, because an array or a promise for each entry would cost more than encoding it.
 */
export class BatchQueue {
  #batches: Batch[] = []
  readonly #reusable: Writer[] = []
  #nextStartsFile = true
  #entryCount = 0
  #pendingBytes = 0

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }
  /** Entries added since the last batch was taken. */
  get entryCount(): number {
    return this.#entryCount
  }
  /** Bytes of entries that were added and whose batch is not durable yet. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }
  get hasFileStart(): boolean {
    return this.#batches.some(({ startsFile }) => startsFile)
  }

  /** Makes the next batch that is opened the beginning of a new file. */
  startFile(): void {
    this.#nextStartsFile = true
  }

  /** Returns the batch that takes the next entry, which is the transaction `zxid`. */
  open(zxid: Zxid): Batch {
    const newest = this.#batches.at(-1)
    if (newest !== undefined && !this.#nextStartsFile && newest.writer.length < MAX_BATCH_BYTES) return newest
    const writer = this.#reusable.pop() ?? new Writer(1 << 16)
    const batch: Batch = { writer, startsFile: this.#nextStartsFile, first: zxid, last: zxid, count: 0 }
    if (batch.startsFile) writeLogHeader(writer)
    this.#nextStartsFile = false
    this.#batches.push(batch)
    return batch
  }

  /** Counts an entry of that many bytes, which was encoded into `batch`. */
  added(batch: Batch, zxid: Zxid, bytes: number): void {
    batch.last = zxid
    batch.count++
    this.#entryCount++
    this.#pendingBytes += bytes
  }

  /** Removes and returns the oldest batch. The queue must not be empty. */
  take(): Batch {
    this.#entryCount = 0
    return this.#batches.shift()!
  }

  /** Reuses the buffer of a batch that is durable. */
  recycle({ writer }: Batch): void {
    this.#pendingBytes = this.#batches.reduce((sum, batch) => sum + batch.writer.length, 0)
    if (writer.length > MAX_REUSED_BYTES || this.#reusable.length >= REUSED_BUFFERS) return
    writer.reset()
    this.#reusable.push(writer)
  }

  /** Drops all entries; the next batch begins a new file. */
  clear(): void {
    this.#batches = []
    this.#entryCount = this.#pendingBytes = 0
    this.#nextStartsFile = true
  }
}
