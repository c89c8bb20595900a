import { RecoverableError } from '@zabra/client/core'

/**
 * A write may or may not have happened and nothing can tell any more: its reply was lost, and the session ended before
 * anybody could look. `value` is what it was about, where there is such a thing.
 */
export class AmbiguousResultError extends RecoverableError {
  static override readonly tag = 'AmbiguousResultError'
  /** What was to be put, taken or acknowledged. */
  readonly value: unknown

  constructor(
    message: string,
    facts: { readonly path: string; readonly cause?: unknown; readonly value?: unknown },
  ) {
    super(message, 'AMBIGUOUS_RESULT', { path: facts.path, cause: facts.cause, maybeApplied: true })
    this.value = facts.value
  }
}
