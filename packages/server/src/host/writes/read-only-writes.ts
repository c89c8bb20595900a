import { ErrorCode } from '@zabra/protocol'
import type { Zxid } from '../../core/types.ts'
import type { Listener } from '../../core/watches/index.ts'
import type { Asker, KeptDigests, Requester, Write, Writes, WritesKit } from './contract.ts'

/**
 * A server without a quorum that lets clients look at what it last knew (`readonlymode.enabled`). Nothing is written, neither
 * to the tree nor to the log; sessions are known here alone.
 */
export class ReadOnlyWrites<L extends Listener> implements Writes {
  readonly outstanding = 0
  readonly writable = false
  readonly digests: KeptDigests = []
  readonly #tree: WritesKit<L>['tree']

  constructor({ tree }: Pick<WritesKit<L>, 'tree'>) {
    this.#tree = tree
  }

  get horizon(): Zxid {
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
  sync(_write: Write, _requester: Requester): number {
    return ErrorCode.NOTREADONLY
  }

  /** Only a quorum knows whether a session still lives; its client looks elsewhere. */
  revalidate(_id: bigint, _timeout: number, asker: Asker): void {
    asker.revalidated(false)
  }

  mayAnswerPing(): boolean {
    return true
  }

  end(): void {}
}
