import type { Socket } from 'node:net'

/** Takes what is written to many sockets, to write all of it at once. */
export interface Gathering {
  /** Changes whenever all that was taken is written. */
  readonly round: number
  /** Takes a copy of a few bytes for a socket with nothing queued; false when they must be written as usual. */
  take(socket: Socket, bytes: Uint8Array): boolean
  /** Writes all that was taken. */
  settle(): void
}

/** The gathering that is under way in this process, from which every connection must know that it is. */
export const underWay: { gathering: Gathering | undefined } = { gathering: undefined }
