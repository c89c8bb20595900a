import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import { PendingSockets } from './pending-sockets.ts'

/** Returns a socket whose peer has a port of its own. */
function socketFrom(port: number): Socket {
  const socket = new Socket()
  Object.defineProperties(socket, { remoteAddress: { value: '10.0.0.9' }, remotePort: { value: port } })
  return socket
}

it('a new socket over the limit is refused, or replaces the oldest one where strangers must not keep others out', () => {
  for (const replacesOldest of [false, true]) {
    const refused: string[] = []
    const pending = new PendingSockets('a TLS handshake', { limit: 2, timeoutMs: 60_000, replacesOldest })
    const sockets = [1, 2, 3].map(socketFrom)
    const admitted = sockets.map((socket) =>
      pending.admit(socket, ({ message }) => void refused.push(message)),
    )
    expect(admitted).toEqual([true, true, replacesOldest])
    expect(sockets.map(({ destroyed }) => destroyed)).toEqual([replacesOldest, false, !replacesOldest])
    expect(refused).toHaveLength(1)
    expect(pending.size).toBe(2)
    for (const socket of sockets) socket.destroy()
  }
})
