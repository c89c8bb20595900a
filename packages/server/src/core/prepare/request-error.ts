/** Ends the validation of one request with an error number. It never leaves this folder. */
export class RequestError extends Error {
  override readonly name = 'Refusal'
  readonly code: number
  constructor(code: number) {
    super(`refused with ${code}`)
    this.code = code
    // One is kept for each number: with its trace it would keep all that was at work when it was first thrown, trees too.
    this.stack = this.message
  }

  /** The number of a refusal; everything else is a fault of ours and goes on. */
  static codeOf(error: unknown): number {
    if (error instanceof RequestError) return error.code
    throw error
  }
}

const refusals = new Map<number, RequestError>()

/** Refuses the request. One error object for each number: a trace would cost more than the request and tell nothing. */
export function reject(code: number): never {
  let refusal = refusals.get(code)
  if (refusal === undefined) refusals.set(code, (refusal = new RequestError(code)))
  throw refusal
}
