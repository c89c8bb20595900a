import type { Address } from '@zabra/runtime'

/**
 * Returns an error that names the protocol of a server which is no ZooKeeper server, from the error of the decoder and the bytes; undefined
 * for an unknown protocol.
 */
export type RecogniseProtocol = (error: unknown, chunk: Uint8Array, from: Address) => Error | undefined

/** Names of errors of files and options, which every attempt reads in the same way. */
const permanentNames: ReadonlySet<string> = new Set([
  'CertificateError',
  'ForeignProtocolError',
  'TlsOptionError',
  'UsageError',
])

/** Causes followed in an error. */
const MAX_CAUSES = 5

/** Returns why every attempt would fail with this error of the transport; undefined for errors that may pass. */
export type ExplainError = (error: Error) => string | undefined

/** Returns why no attempt at this server can succeed, by the error of one; undefined for errors that may pass. */
export function permanentReason(error: unknown, explain?: ExplainError): string | undefined {
  let at = error
  for (let depth = 0; depth < MAX_CAUSES && at instanceof Error; depth++) {
    if (permanentNames.has(at.name)) return at.message
    const reason = explain?.(at)
    if (reason !== undefined) return reason
    at = at.cause
  }
  return undefined
}
