import { RestoreRefusal, RestoreUndecided } from '../admin/index.ts'
import type { ServerId } from '../core/quorum/index.ts'
import { replacementOf, type Tree } from '../core/tree/index.ts'
import type { Zxid } from '../core/types.ts'

/** New data with which a leader has left its role: the next leader decides whether they are those of the ensemble. */
export class AwaitedReplacement {
  /**
   * Resolves when the ensemble has the new data. Rejects with a `RestoreUndecided` when this server ends before that is known, and with
   * another error when the ensemble has the old ones.
   */
  readonly outcome: Promise<void>
  readonly #zxid: Zxid
  #isOpen = true
  #resolve: () => void = () => {}
  #reject: (error: unknown) => void = () => {}

  /** `zxid` is the last one of the new data. */
  constructor(zxid: Zxid) {
    this.#zxid = zxid
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Whether the outcome is not known yet. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Records that `leader` has a quorum, and that `tree` is in step with it. */
  established(tree: Tree, leader: ServerId | undefined): void {
    // A later history may begin with the new data, also where this server has received it from another member.
    if (replacementOf(tree) === this.#zxid) this.#end(this.#resolve)
    else
      this.refused(
        new RestoreRefusal(
          `Server ${leader} was elected with other data: nothing is replaced. Try again there.`,
          { isPassing: true },
        ),
      )
  }

  /** Records that the new data are on no disk. */
  refused(error: unknown): void {
    this.#end(() => this.#reject(error))
  }

  /** Records that this server ends, for a reason. */
  undecided(reason: string): void {
    const message = `${reason}: it is not known whether the data are replaced. Look at the data of the ensemble.`
    this.refused(new RestoreUndecided(message))
  }

  #end(settle: () => void): void {
    this.#isOpen = false
    settle()
  }
}
