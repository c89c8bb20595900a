import type { Socket } from 'node:net'
import { TurnQueue } from './turn-queue.ts'

/** Sockets closed per turn of the event loop, unless they take `TURN_MS`. Closing one takes 30 µs or more, mostly in the operating system. */
export const CLOSES_PER_TURN = 100
const TURN_MS = 2

const closes = new TurnQueue(TURN_MS, CLOSES_PER_TURN)

/**
 * Closes a socket whose peer has ended, after the I/O that is ready now. When thousands of connections end at once, they are
 * closed in batches, and other connections are served in between.
 */
export const queueClose = (socket: Socket): void => closes.runLater(() => socket.destroy())

/**
 * Closes a socket in this turn, if there is time, else in a later one behind those that wait: a server whose role ends destroys the
 * connections of all its clients at once.
 */
export const closeSoon = (socket: Socket): void => closes.run(() => socket.destroy())
