import { OpCode, ProtocolError, Reader, readText } from '@zabra/protocol'
import { ConfigurationError, parseConfiguration, type EnsembleConfiguration } from '../quorum/index.ts'

/** Offset of the type in a transaction header, after session, cxid, zxid and time. */
const TYPE_OFFSET = 28

/**
 * Returns the configuration in the payload of a reconfig transaction, or undefined for any other transaction, of which only
 * the type is read. Throws a `ProtocolError` if the configuration is invalid.
 */
export function proposedConfiguration(payload: Uint8Array): EnsembleConfiguration | undefined {
  const at = TYPE_OFFSET
  // The last byte of the type tells nearly all other transactions apart.
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

/** Parses the text of a configuration. Throws a `ProtocolError` if it is invalid. */
export function decodeConfiguration(text: string): EnsembleConfiguration {
  try {
    return parseConfiguration(text)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    throw new ProtocolError(error.message, 0, 'a configuration')
  }
}
