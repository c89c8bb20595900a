import { errors } from '@zabra/protocol'

/** A failed request, with the error code of the protocol. */
export class RequestError extends Error {
  override readonly name = 'RequestError'
  readonly wireCode: number
  /** The path as the caller gave it. */
  readonly path: string | undefined
  constructor(wireCode: number, path: string | undefined, message?: string, options?: ErrorOptions) {
    const meaning = errors.get(wireCode)?.meaning ?? `The server answered with the error ${wireCode}.`
    super(message ?? (path === undefined ? meaning : `${path}: ${meaning}`), options)
    this.wireCode = wireCode
    this.path = path
  }
}
