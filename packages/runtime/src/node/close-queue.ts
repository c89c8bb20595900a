import type { Socket } from 'node:net'

/** Sockets closed per turn of the event loop, unless they take `TURN_MS`. Closing one takes 30 µs or more, mostly in the operating system. */
export const CLOSES_PER_TURN = 100
const TURN_MS = 2
const CLOSES_PER_CHECK = 10

const queue: Socket[] = []
let scheduled = false
/** Until when sockets are closed in this turn. */
let turnEnd = 0

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

/**
 * Closes a socket in this turn, if there is time, else in a later one behind those that wait: a server whose role ends destroys the
 * connections of all its clients at once.
 */
export function closeSoon(socket: Socket): void {
  if (!scheduled) {
    scheduled = true
    turnEnd = performance.now() + TURN_MS
    setImmediate(closeSome)
  }
  if (queue.length === 0 && performance.now() < turnEnd) socket.destroy()
  else queue.push(socket)
}

function closeSome(): void {
  const end = performance.now() + TURN_MS
  let closed = 0
  for (const socket of queue) {
    socket.destroy()
    if (++closed === CLOSES_PER_TURN) break
    if (closed % CLOSES_PER_CHECK === 0 && performance.now() >= end) break
  }
  queue.splice(0, closed)
  scheduled = queue.length > 0
  if (scheduled) setImmediate(closeSome)
}
