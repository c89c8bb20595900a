import type { Socket } from 'node:net'
import { HANDSHAKE } from './client-hello.ts'
import type { PendingSockets } from './pending-sockets.ts'

/**
 * Returns a handler of accepted sockets that passes them to `secure` when their first byte begins a TLS handshake, and to `plain`
 * otherwise. The byte stays in the socket. `pending` limits the sockets that have sent nothing.
 */
export function detectTls(
  pending: PendingSockets,
  refused: (error: Error) => void,
  secure: (socket: Socket) => void,
  plain: (socket: Socket) => void,
): (socket: Socket) => void {
  return (socket) => {
    if (!pending.admit(socket, refused)) return
    const fail = (): void => void socket.destroy()
    socket.once('error', fail)
    socket.once('readable', () => {
      pending.ready(socket)
      const chunk = socket.read() as Buffer | null
      // It has closed without sending a byte.
      if (chunk === null) return fail()
      socket.unshift(chunk)
      // The new owner has added its own error listener.
      if (chunk[0] === HANDSHAKE) secure(socket)
      else plain(socket)
      socket.off('error', fail)
    })
  }
}
