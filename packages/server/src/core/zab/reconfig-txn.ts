import { OpCode, ProtocolError, Reader, readText } from '@zabra/protocol'
import { ConfigurationError, parseConfiguration, type EnsembleConfiguration } from '../quorum/index.ts'

/** In a transaction's header: session, cxid, zxid and time come before the type. */
const TYPE_OFFSET = 28

/**
 * The configuration that a logged transaction proposes, or undefined for any other transaction, at the price of reading its
 * type. Throws a `ProtocolError` when it cannot be read.
 */
export function proposedConfiguration(payload: Uint8Array): EnsembleConfiguration | undefined {
  const at = TYPE_OFFSET
  // The type is an int, of which ordinary transactions have other last bytes.
  if (
    payload[at + 3] !== OpCode.reconfig ||
    payload[at] !== 0 ||
    payload[at + 1] !== 0 ||
    payload[at + 2] !== 0
  )
    return undefined
  const reader = new Reader(payload, at + 4)
  reader.string()
  const text = reader.buffer() ?? new Uint8Array(0)
  return decodeConfiguration(readText(text, 0, text.length))
}

/** The configuration that a text holds. Throws a `ProtocolError` when it cannot be read. */
export function decodeConfiguration(text: string): EnsembleConfiguration {
  try {
    return parseConfiguration(text)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    throw new ProtocolError(error.message, 0, 'a configuration')
  }
}
