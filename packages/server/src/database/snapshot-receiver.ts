import { ProtocolError } from '@zabra/protocol'
import { invariant, type Clock } from '@zabra/runtime'
import type { SessionMap } from '../core/session-map.ts'
import type { Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'
import { DamageError, loadSnapshotStream, pauseAfter } from '../persistence/index.ts'
import { ChunkPipe } from './chunk-pipe.ts'
import type { SnapshotSink } from './types.ts'

/** The source of the bytes, as errors name it. */
const SOURCE = 'the snapshot of the leader'
/** How long the event loop is held at a time, in milliseconds. */
const SLICE_MS = 3

/** A tree that was received completely. */
export interface ReceivedSnapshot {
  readonly tree: Tree
  readonly sessions: SessionMap<number>
  /** Nodes whose access control list is not in the stream; later transactions contain it. */
  readonly nodesWithoutAcl: readonly string[]
}

/** Parses the snapshot of a leader into a new tree while it is received. */
export class SnapshotReceiver implements SnapshotSink {
  readonly #pipe: ChunkPipe
  readonly #tree: Tree
  readonly #loaded: Promise<ReceivedSnapshot & { readonly rest: Uint8Array }>
  readonly #onComplete: (received: ReceivedSnapshot) => void
  #state: 'open' | 'writing' | 'complete' | 'aborted' = 'open'
  #received = 0

  /** `onComplete` is called with the tree, before the last `write` resolves. */
  constructor(clock: Clock, tree: Tree, zxid: Zxid, onComplete: (received: ReceivedSnapshot) => void) {
    this.#pipe = new ChunkPipe(clock)
    this.#onComplete = onComplete
    this.#tree = tree
    this.#loaded = loadSnapshotStream(this.#pipe, SOURCE, tree, zxid, pauseAfter(clock, SLICE_MS)).then(
      (loaded) => ({ tree, ...loaded }),
    )
    // `write` reports a failure; without this handler it would be unhandled while no write is in progress.
    this.#loaded.catch(() => {})
  }

  get received(): number {
    return this.#received
  }

  get nodes(): number {
    return this.#tree.nodeCount
  }

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  async write(bytes: Uint8Array): Promise<number> {
    invariant(this.#state === 'open', 'A snapshot is written one call at a time until it is complete.', {
      state: this.#state,
    })
    this.#state = 'writing'
    let isFinished = false
    const ended = this.#loaded.finally(() => (isFinished = true))
    ended.catch(() => {})
    const pushed = await this.#pipe.push(bytes, this.#loaded)
    // Aborted while the bytes were parsed.
    if (this.#state !== 'writing') return bytes.length
    this.#state = 'open'
    if (!isFinished) {
      this.#received += pushed
      return pushed
    }
    return this.#finish(pushed)
  }

  async #finish(pushed: number): Promise<number> {
    try {
      const loaded = await this.#loaded
      const taken = pushed - loaded.rest.length
      this.#received += taken
      this.#state = 'complete'
      this.#onComplete(loaded)
      return taken
    } catch (error) {
      this.#state = 'aborted'
      if (error instanceof ProtocolError || error instanceof RangeError)
        throw new DamageError(
          `Expected a snapshot (${error.message})`,
          SOURCE,
          this.#received,
          'Connect again; the data on disk are as before.',
          {
            cause: error,
          },
        )
      throw error
    }
  }

  abort(): void {
    if (this.#state === 'complete' || this.#state === 'aborted') return
    this.#state = 'aborted'
    this.#pipe.end()
  }
}
