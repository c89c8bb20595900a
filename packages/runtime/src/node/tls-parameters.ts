import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { TlsParameters } from '../network.ts'

/** Returns what the TLS handshake of a socket has agreed on; undefined without TLS, and once the socket is closed. */
export function tlsParametersOf(socket: Socket | TLSSocket): TlsParameters | undefined {
  if (!('getProtocol' in socket)) return undefined
  const version = socket.getProtocol()
  return version === null ? undefined : { version, cipher: socket.getCipher().standardName }
}
