import { ZooKeeperError } from '@zabra/client/core'

/**
 * The outcome of a write is unknown: its reply was lost, and the session expired, or the limits of the call ended it, before
 * the result could be read. `value` is the value concerned, if any, and `cause` says what ended the call.
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

/** How the message of a write begins whose outcome the servers do not show. */
export const UNREAD = 'The outcome could not be read'

/** Returns what ended the call, which the message begins with, for that of another error. */
export const endOf = (error: ZooKeeperError): string =>
  error instanceof AmbiguousResultError ? error.message.slice(0, error.message.indexOf(',')) : UNREAD
