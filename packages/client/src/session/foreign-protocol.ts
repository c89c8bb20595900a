import { ProtocolError } from '@zabra/protocol'
import type { RecogniseProtocol } from './connect-failure.ts'

/** The server speaks another protocol at this port: no attempt can succeed. */
class ForeignProtocolError extends Error {
  override readonly name = 'ForeignProtocolError'
}

/** Recognises TLS and HTTP. Pages do not load it: a WebSocket hides what a server of another protocol answers. */
export const recogniseProtocol: RecogniseProtocol = (error, chunk, { host, port }) => {
  if (!(error instanceof ProtocolError && error.field === 'a frame length')) return undefined
  const name = nameOf(chunk)
  if (name === undefined) return undefined
  return new ForeignProtocolError(`${host}:${port} answers with ${name}`, { cause: error })
}

/** Returns the name of the protocol, with advice; undefined for an unknown one. */
function nameOf(chunk: Uint8Array): string | undefined {
  // An alert of TLS 1.x, and the first letters of a status line.
  if (chunk[0] === 0x15 && chunk[1] === 3)
    return 'TLS: connect with TLS, or to the port of clients without TLS'
  return [0x48, 0x54, 0x54, 0x50].every((byte, i) => chunk[i] === byte)
    ? 'HTTP: connect to the client port of a ZooKeeper server, or with ws:// to its port for WebSockets'
    : undefined
}
