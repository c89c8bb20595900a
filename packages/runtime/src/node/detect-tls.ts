import type { Socket } from 'node:net'
import type { PendingSockets } from './pending-sockets.ts'

/** What a record of TLS begins with when it opens a handshake. A frame of ours would be 352 MiB long with it. */
const HANDSHAKE = 0x16

/**
 * Tells sockets that begin a handshake of TLS from others by their first byte, which stays in the socket. Those that say
 * nothing are bounded by `silent`.
 */
export function detectTls(
  silent: PendingSockets,
  refused: (error: Error) => void,
  secure: (socket: Socket) => void,
  plain: (socket: Socket) => void,
): (socket: Socket) => void {
  return (socket) => {
    if (!silent.admit(socket, refused)) return
    const fail = (): void => void socket.destroy()
    socket.once('error', fail)
    socket.once('readable', () => {
      silent.ready(socket)
      const chunk = socket.read() as Buffer | null
      // It has closed without a word.
      if (chunk === null) return fail()
      socket.unshift(chunk)
      // Whoever takes it over listens for errors itself, at once.
      if (chunk[0] === HANDSHAKE) secure(socket)
      else plain(socket)
      socket.off('error', fail)
    })
  }
}
