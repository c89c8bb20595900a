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

export interface HelloHandler {
  /** Gets a socket that has sent its ClientHello, or the first bytes of something else, which TLS refuses. */
  readonly ready: (greeted: GreetedSocket) => void
  /** Called when the ClientHello does not end. */
  readonly tooLong: () => void
  /** Runs a read when there is time for it. */
  readonly later: (read: () => void) => void
}

/**
 * Reads a whole ClientHello, before any work is done for the client. Closes a socket that ends or fails, until it is given back: one that
 * may be half open in a later turn, with few others.
 */
export function awaitHello(socket: Socket, { ready, tooLong, later }: HelloHandler): void {
  let bytes: Buffer | undefined
  let isReady = false
  let isGivenBack = false
  const leave = (): void => void socket.destroy()
  // Hundreds of clients that wait for their handshakes may leave at once.
  const end = (): void => queueClose(socket)
  const giveBack = (): void => {
    isGivenBack = true
    socket.off('readable', onReadable).off('end', end)
    if (bytes !== undefined) socket.unshift(bytes)
    // The new owner adds its own error listener in this turn.
    process.nextTick(() => socket.off('error', leave))
  }
  const read = (): void => {
    if (isGivenBack) return
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
  const onReadable = (): void => later(read)
  socket.on('error', leave).on('end', end).on('readable', onReadable)
}
