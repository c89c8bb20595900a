import type { Socket } from 'node:net'

/** Sockets closed per turn of the event loop. Closing one takes 30 µs or more, mostly in the operating system. */
export const CLOSES_PER_TURN = 100

const queue: Socket[] = []
let scheduled = false

/**
 * Closes a socket whose peer has ended, after the I/O that is ready now. When thousands of connections end at once, they are
 * closed in batches, and other connections are served in between.
 */
export function queueClose(socket: Socket): void {
  queue.push(socket)
  if (scheduled) return
  scheduled = true
  setImmediate(closeSome)
}

function closeSome(): void {
  for (const socket of queue.splice(0, CLOSES_PER_TURN)) socket.destroy()
  scheduled = queue.length > 0
  if (scheduled) setImmediate(closeSome)
}
