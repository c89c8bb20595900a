/** Bytes that are not what the protocol allows. Every malformed input gives this error and no other. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  /** Where in the bytes the reading stopped, counted from the start of what was read. */
  readonly offset: number
  /** What was being read there. */
  readonly field: string
  constructor(message: string, offset: number, field: string) {
    super(`${message} (reading ${field} at offset ${offset})`)
    this.offset = offset
    this.field = field
  }
}
