import { ErrorCode } from '@zabra/protocol'
import type { Zxid } from '../core/types.ts'
import type { NotifiedWatcher } from '../core/watches/index.ts'
import type {
  RevalidationCallback,
  RecordedDigests,
  WriteCallback,
  ClientWrite,
  RequestPipeline,
  PipelineContext,
} from './types.ts'

/**
 * A server without a quorum that lets clients look at what it last knew (`readonlymode.enabled`). Nothing is written, neither
 * to the tree nor to the log; sessions are known here alone.
 */
export class ReadOnlyPipeline<L extends NotifiedWatcher> implements RequestPipeline {
  readonly outstanding = 0
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

  /** What others have committed meanwhile is not to be had here. */
  sync(_write: ClientWrite, _requester: WriteCallback): number {
    return ErrorCode.NOTREADONLY
  }

  /** Only a quorum knows whether a session still lives; its client looks elsewhere. */
  revalidate(_id: bigint, _timeout: number, asker: RevalidationCallback): void {
    asker.onRevalidated(false)
  }

  canAnswerPing(): boolean {
    return true
  }

  end(): void {}
}
