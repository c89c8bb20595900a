import { Writer } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { LaterTurns } from '../core/later-turns.ts'
import type { Tree, TreeCursor } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import {
  END_OF_NODES,
  SLICE_BYTES,
  SnapshotTables,
  STREAM_SIGNATURE,
  writeNode,
  type SessionTimeouts,
} from '../persistence/index.ts'
import type { SnapshotSource } from './types.ts'

const CHUNK_NODES = 500

/** Streams the tree to a learner (disk-format 7.10): one chunk for each call, at most one in a turn of the event loop. */
export class SnapshotStream implements SnapshotSource, AsyncIterableIterator<Uint8Array> {
  readonly zxid: Zxid
  readonly nodes: number
  readonly #tree: Tree
  readonly #turns: LaterTurns
  readonly #cursor: TreeCursor
  readonly #writer = new Writer(1 << 17)
  readonly #tables: SnapshotTables
  readonly #tableSlices: Generator<void>
  #state: 'new' | 'streaming' | 'ended' = 'new'

  /** Streams that have the same `turns` share them. */
  constructor(tree: Tree, sessions: SessionTimeouts, clock: Clock, turns = new LaterTurns({ clock })) {
    this.#tree = tree
    this.#turns = turns
    this.zxid = tree.lastZxid
    this.nodes = tree.nodeCount
    // The tables are those of the zxid. Later changes follow as transactions after the stream.
    this.#tables = new SnapshotTables(tree, sessions)
    this.#tableSlices = this.#tables.write(this.#writer)
    this.#cursor = tree.scan()
  }

  get chunks(): AsyncIterableIterator<Uint8Array> {
    return this
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    return this.#state === 'streaming' ? this.#turns.run(() => this.#next()) : this.#next()
  }

  #next(): IteratorResult<Uint8Array> {
    if (this.#state === 'ended') return { done: true, value: undefined }
    this.#state = 'streaming'
    const w = this.#writer
    if (this.#tableSlices.next().done !== true) return { done: false, value: w.take() }
    let more = true
    for (let nodes = 0; more && nodes < CHUNK_NODES && w.length < SLICE_BYTES; nodes++)
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
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#tables.close()
    this.#cursor.close()
  }
}
