import { ProtocolError } from '@zabra/protocol'
import { invariant, type Clock } from '@zabra/runtime'
import type { Tree } from '../core/tree/index.ts'
import type { SessionId, Zxid } from '../core/types.ts'
import { DamageError, loadSnapshotStream } from '../persistence/index.ts'
import type { SnapshotSink } from './types.ts'
import { ChunkPipe } from './snapshot-stream.ts'

const FROM = 'the snapshot of the leader'

/** A tree that has come whole. */
export interface ReceivedSnapshot {
  readonly tree: Tree
  readonly sessions: Map<SessionId, number>
  /** Nodes whose access control list the stream did not have yet. */
  readonly nodesWithoutAcl: readonly string[]
}

/** Builds a new tree from the bytes of a leader, as they come, and gives it away when it is whole. */
export class SnapshotReceiver implements SnapshotSink {
  readonly #pipe: ChunkPipe
  readonly #loaded: Promise<ReceivedSnapshot & { readonly rest: Uint8Array }>
  readonly #complete: (received: ReceivedSnapshot) => void
  #state: 'open' | 'writing' | 'complete' | 'aborted' = 'open'
  #received = 0

  constructor(clock: Clock, tree: Tree, zxid: Zxid, complete: (received: ReceivedSnapshot) => void) {
    this.#pipe = new ChunkPipe(clock)
    this.#complete = complete
    this.#loaded = loadSnapshotStream(this.#pipe, FROM, tree, zxid).then((loaded) => ({ tree, ...loaded }))
    // Who writes hears of a failure; nobody may be writing.
    this.#loaded.catch(() => {})
  }

  get received(): number {
    return this.#received
  }

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  async write(bytes: Uint8Array): Promise<number> {
    invariant(this.#state === 'open', 'A snapshot takes bytes one after the other until it is complete.', {
      state: this.#state,
    })
    if (bytes.length === 0) return 0
    this.#state = 'writing'
    let finished = false
    const ended = this.#loaded.finally(() => (finished = true))
    ended.catch(() => {})
    const pushed = await this.#pipe.push(bytes, this.#loaded)
    // Given up while the bytes were parsed.
    if (this.#state !== 'writing') return bytes.length
    this.#state = 'open'
    if (!finished) {
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
      this.#complete(loaded)
      return taken
    } catch (error) {
      this.#state = 'aborted'
      if (error instanceof ProtocolError || error instanceof RangeError)
        throw new DamageError(
          `Expected a snapshot (${error.message})`,
          FROM,
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
