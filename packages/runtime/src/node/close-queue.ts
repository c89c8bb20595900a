import type { Socket } from 'node:net'

/** Sockets that are closed in one turn of the event loop. To close one takes 30 µs and more, most of it in the system. */
export const CLOSES_PER_TURN = 100

const leaving: Socket[] = []
let scheduled = false

/**
 * Closes a socket whose peer has ended, after the I/O that is ready now. When thousands end at once, as the clients of a machine
 * that is switched off, the others are served between two steps.
 */
export function queueClose(socket: Socket): void {
  leaving.push(socket)
  if (scheduled) return
  scheduled = true
  setImmediate(closeSome)
}

function closeSome(): void {
  for (const socket of leaving.splice(0, CLOSES_PER_TURN)) socket.destroy()
  scheduled = leaving.length > 0
  if (scheduled) setImmediate(closeSome)
}
