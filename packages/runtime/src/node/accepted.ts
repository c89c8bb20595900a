import { Socket, type OnReadOpts } from 'node:net'
import { sharedReadBuffer, SocketConnection } from './socket-connection.ts'

/** What the platform has underneath a socket, as far as it matters here. */
interface Handle {
  useUserBuffer?: (bytes: Uint8Array) => unknown
}
type OnHandle = Socket & { _handle?: Handle | null }
interface OnHandleOptions {
  readonly handle: object
  readonly onread: OnReadOpts
  readonly allowHalfOpen?: boolean
}
type MakeSocket = new (options: OnHandleOptions) => Socket

/** A socket that a server has accepted as a connection. */
export function acceptedConnection(socket: Socket): SocketConnection {
  const reading = intoSharedArray(socket)
  return new SocketConnection(reading ?? socket, { transport: 'tcp', hasReadCallback: reading !== undefined })
}

/**
 * The same connection as a socket that reads into the shared array; undefined, with nothing touched, where that is not to be had.
 *
 * FENCED: leaves the documented interface of `node:net`, in which only who connects may say `onread`. The handle of the accepted
 * socket goes to a second one, by `_handle` and the option `handle`, and the first is destroyed without it. The platform hands
 * sockets on between processes and threads in the same way.
 * Why: a read as an event takes 64 KiB that shrink to what came, a `Buffer` and a way through a stream, which is 1.4 µs and more
 * for each. The second socket costs some 10 µs once.
 * Rules: only before anything is read and before anybody else has the socket; only where `takesHandles` has seen that the platform
 * does as expected. What the server has set (no delay, keep-alive) is set on the handle, and stays.
 */
function intoSharedArray(socket: OnHandle): Socket | undefined {
  const onread = sharedReadBuffer()
  const handle = socket._handle
  if (onread === undefined || typeof handle?.useUserBuffer !== 'function') return undefined
  if (!(isUsual ??= takesHandles())) return undefined
  const reading = new (Socket as MakeSocket)({ handle, onread, allowHalfOpen: socket.allowHalfOpen })
  reading.pause()
  // Whoever has the first one finds it closed, and the server does not count it any more.
  socket._handle = null
  socket.destroy()
  return reading
}

let isUsual: boolean | undefined

/** Whether sockets of this platform take a handle, have it read into the array of `onread`, and stop it when they are paused. */
export function takesHandles(make: MakeSocket = Socket): boolean {
  const buffer = new Uint8Array(1)
  const used: Uint8Array[] = []
  let reads = false
  const start = (does: boolean) => (): number => {
    reads = does
    return 0
  }
  const handle = {
    useUserBuffer: (bytes: Uint8Array) => used.push(bytes),
    readStart: start(true),
    readStop: start(false),
  }
  try {
    const socket: OnHandle = new make({ handle, onread: { buffer, callback: () => true } })
    const isTaken = socket._handle === handle && used.length === 1 && used[0] === buffer
    const isStarted = reads
    socket.pause()
    return isTaken && isStarted && !reads
  } catch {
    return false
  }
}
