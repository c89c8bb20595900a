import { ErrorCode } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type {
  ClientWrite,
  PipelineContext,
  RecordedDigests,
  RequestPipeline,
  RevalidationCallback,
  WriteCallback,
} from './types.ts'

/**
 * Serves reads of the last known state on a server without a quorum (`readonlymode.enabled`). Writes neither to the tree nor to
 * the log; sessions are local.
 */
export class ReadOnlyPipeline<L extends NotifiedWatcher> implements RequestPipeline {
  readonly outstanding = 0
  readonly transactions = 0
  readonly unprepared = undefined
  readonly unapplied = 0
  readonly queues = {}
  readonly isWritable = false
  readonly digests: RecordedDigests = []
  readonly #tree: PipelineContext<L>['tree']

  constructor({ tree }: Pick<PipelineContext<L>, 'tree'>) {
    this.#tree = tree
  }

  get lastVisibleZxid(): Zxid {
    return this.#tree.lastZxid
  }

  write(): number {
    return ErrorCode.NOTREADONLY
  }

  createSession(): boolean {
    return false
  }

  closeSession(): boolean {
    return false
  }

  /** Rejects a sync: this server receives no commits of the others. */
  sync(_write: ClientWrite, _callback: WriteCallback): number {
    return ErrorCode.NOTREADONLY
  }

  /** Rejects a global session: only a quorum can tell whether it is alive. The client tries other servers. */
  revalidate(_id: bigint, _timeout: number, callback: RevalidationCallback): void {
    callback.onRevalidated(false)
  }

  canAnswerPing(): boolean {
    return true
  }

  end(): undefined {}
}
