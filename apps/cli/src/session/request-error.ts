import { ErrorCode, errors } from '@zabra/protocol'

/** A request that was not carried out, or of which nobody knows whether it was. */
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

/** The connection is gone; whether the request was carried out is not known. */
export const connectionLost = (server: string, cause?: Error): RequestError =>
  new RequestError(
    ErrorCode.CONNECTIONLOSS,
    undefined,
    `The connection to ${server} was lost${cause === undefined ? '' : ` (${cause.message})`}. Look at what the command changed before you repeat it.`,
    cause === undefined ? {} : { cause },
  )
