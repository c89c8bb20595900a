import { Writer } from '@zabra/protocol'
import { invariant, type Clock } from '@zabra/runtime'
import type { Tree, TreeCursor } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  END_OF_NODES,
  STREAM_SIGNATURE,
  writeNode,
  writeSessionsAndAcls,
  type SessionTimeouts,
} from '../persistence/index.ts'
import type { SnapshotSource } from './types.ts'

const CHUNK_BYTES = 1 << 16
const CHUNK_NODES = 500

/** A tree on its way to a learner: a chunk for each call, at most one in a turn of the event loop. */
export class SnapshotStream implements SnapshotSource, AsyncIterableIterator<Uint8Array> {
  readonly zxid: Zxid
  readonly #tree: Tree
  readonly #clock: Clock
  readonly #cursor: TreeCursor
  readonly #writer = new Writer(1 << 17)
  #state: 'begun' | 'walking' | 'over' = 'begun'

  constructor(tree: Tree, sessions: SessionTimeouts, clock: Clock) {
    this.#tree = tree
    this.#clock = clock
    this.zxid = tree.lastZxid
    // In this turn, so that the tables are those of the zxid; what nodes are later is told behind the stream.
    writeSessionsAndAcls(this.#writer, tree, sessions)
    this.#cursor = tree.scan()
  }

  get chunks(): AsyncIterableIterator<Uint8Array> {
    return this
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#state === 'walking') await yieldToEventLoop(this.#clock)
    if (this.#state === 'over') return { done: true, value: undefined }
    this.#state = 'walking'
    const w = this.#writer
    let more = true
    for (let nodes = 0; more && nodes < CHUNK_NODES && w.length < CHUNK_BYTES; nodes++)
      more = this.#cursor.next(1, (node) => writeNode(w, this.#tree, node))
    if (!more) {
      w.string(END_OF_NODES)
      w.string(STREAM_SIGNATURE)
      this.#end()
    }
    return { done: false, value: w.take() }
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#end()
    return { done: true, value: undefined }
  }

  #end(): void {
    if (this.#state === 'over') return
    this.#state = 'over'
    this.#cursor.close()
  }
}

const PIECE_BYTES = 1 << 16

/** Hands chunks from one who pushes to one who pulls; a push resolves when its bytes are used up. */
export class ChunkPipe {
  readonly #clock: Clock
  #take: ((chunk: Uint8Array | undefined) => void) | undefined
  #used: (() => void) | undefined
  #ended = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** For the reader: the next chunk, or undefined when nothing more comes. */
  next(): Promise<Uint8Array | undefined> {
    invariant(this.#take === undefined, 'A pipe has one reader that waits.')
    this.#used?.()
    if (this.#ended) return Promise.resolve(undefined)
    return new Promise((resolve) => (this.#take = resolve))
  }

  /** For the writer: a few milliseconds of parsing at a time. `done` settles when the reader wants no more. */
  async push(bytes: Uint8Array, done: Promise<unknown>): Promise<number> {
    let finished = false
    const over = done.then(
      () => (finished = true),
      () => (finished = true),
    )
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      if (at > 0) await yieldToEventLoop(this.#clock)
      const piece = bytes.subarray(at, at + PIECE_BYTES)
      const used = new Promise<void>((resolve) => (this.#used = resolve))
      const take = this.#take
      this.#take = undefined
      if (finished || take === undefined) return at
      take(piece)
      await Promise.race([used, over])
      if (finished) return Math.min(at + PIECE_BYTES, bytes.length)
    }
    return bytes.length
  }

  end(): void {
    this.#ended = true
    const take = this.#take
    this.#take = undefined
    take?.(undefined)
  }
}

export const yieldToEventLoop = (clock: Clock): Promise<void> =>
  new Promise((resolve) => clock.immediate(resolve))
