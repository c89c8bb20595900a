/** Ends the validation of a write with an error number. Is never thrown out of the preparer. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly code: number
  constructor(code: number) {
    super(`rejected with ${code}`)
    this.code = code
    // One instance is kept for each code. A stack trace would retain everything that was live at its first use, trees included.
    this.stack = this.message
  }

  /** Returns the code of a RequestError, and throws any other error again. */
  static codeOf(error: unknown): number {
    if (error instanceof RequestError) return error.code
    throw error
  }
}

const errors = new Map<number, RequestError>()

/** Throws the RequestError of a code. There is one for each code: creating a stack trace would cost more than the request. */
export function reject(code: number): never {
  let error = errors.get(code)
  if (error === undefined) errors.set(code, (error = new RequestError(code)))
  throw error
}
