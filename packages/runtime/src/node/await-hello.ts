import type { Socket } from 'node:net'
import { MAX_HELLO_BYTES, readClientHello } from './client-hello.ts'
import { queueClose } from './close-queue.ts'

/** A socket that has sent its ClientHello. */
export interface GreetedSocket {
  /** Whether the client will have to send another ClientHello. */
  readonly needsRetry: boolean
  /** Puts the bytes that were read back into the socket. */
  readonly giveBack: () => void
}

/**
 * Reads a whole ClientHello, before any work is done for the client. Calls `ready` with it, or with the first bytes of something
 * else, which TLS refuses; calls `tooLong` when it does not end. Closes a socket that ends or fails, until it is given back: one that
 * may be half open in a later turn, with few others.
 */
export function awaitHello(
  socket: Socket,
  ready: (greeted: GreetedSocket) => void,
  tooLong: () => void,
): void {
  let bytes: Buffer | undefined
  let isReady = false
  const leave = (): void => void socket.destroy()
  // Hundreds of clients that wait for their handshakes may leave at once.
  const end = (): void => queueClose(socket)
  const giveBack = (): void => {
    socket.off('readable', read).off('end', end)
    if (bytes !== undefined) socket.unshift(bytes)
    // The new owner adds its own error listener in this turn.
    process.nextTick(() => socket.off('error', leave))
  }
  const read = (): void => {
    // What else it sends waits in the socket; an end is seen by reading.
    if (isReady && socket.readableLength > 0) return
    const chunk = socket.read() as Buffer | null
    if (chunk === null || isReady) return
    bytes = bytes === undefined ? chunk : Buffer.concat([bytes, chunk])
    const first = readClientHello(bytes)
    if (first.kind === 'incomplete') {
      if (bytes.length > MAX_HELLO_BYTES) tooLong()
      return
    }
    isReady = true
    ready({ needsRetry: first.kind === 'hello' && first.needsRetry, giveBack })
  }
  socket.on('error', leave).on('end', end).on('readable', read)
}
