import { ZooKeeperError } from '@zabra/client/core'

/**
 * The outcome of a write is unknown and cannot be determined any more: its reply was lost, and the session expired
 * before the result could be read. `value` is the value concerned, if any.
 */
export class AmbiguousResultError extends ZooKeeperError {
  static override readonly tag = 'AmbiguousResultError'
  /** The value that was to be put, taken or acknowledged. */
  readonly value: unknown

  constructor(
    message: string,
    facts: { readonly path: string; readonly cause?: unknown; readonly value?: unknown },
  ) {
    super(message, 'AMBIGUOUS_RESULT', { path: facts.path, cause: facts.cause, maybeApplied: true })
    this.value = facts.value
  }
}
