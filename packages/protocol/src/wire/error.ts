/** Malformed bytes. Every malformed input gives this error and no other. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  /** Offset of the error from the start of the message. */
  readonly offset: number
  /** What was being read at that offset. */
  readonly field: string
  constructor(message: string, offset: number, field: string) {
    super(`${message} (reading ${field} at offset ${offset})`)
    this.offset = offset
    this.field = field
  }
}
