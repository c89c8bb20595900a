/** A violated invariant. The process cannot recover: it logs the error and stops. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
  readonly details: object
  constructor(message: string, details: object) {
    super(
      `${message} ${JSON.stringify(details, (_, value: unknown) => (typeof value === 'bigint' ? `0x${value.toString(16)}` : value))}`,
    )
    this.details = details
  }
}

/** Throws an `InvariantError` when `condition` is false, in production too. */
export function invariant(condition: boolean, what: string, details: object = {}): asserts condition {
  if (!condition) throw new InvariantError(what, details)
}
