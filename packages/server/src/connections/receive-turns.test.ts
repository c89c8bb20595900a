import { expect, it } from 'vitest'
import type { FlowControl, ThrottledChannel } from './flow-control.ts'
import { ReceiveTurns } from './receive-turns.ts'

const CHUNK = 65_536

/** Connections whose sockets always have more of a request. A turn reads each that is not paused, up to 32 chunks in a row, as Node does. */
class Sockets {
  readonly #later: (() => void)[] = []
  readonly turns = new ReceiveTurns({ runLater: (action) => void this.#later.push(action) })
  readonly channels: (ThrottledChannel & { isPaused: boolean; chunks: number })[] = []

  constructor(count: number) {
    while (this.channels.length < count) {
      const channel = {
        isPaused: false,
        chunks: 0,
        session: undefined,
        flow: undefined as unknown as FlowControl,
      }
      channel.flow = {
        pause: () => (channel.isPaused = true),
        resume: () => (channel.isPaused = false),
      } as unknown as FlowControl
      this.channels.push(channel)
    }
  }

  /** Runs an iteration of the event loop, and returns the chunks that were read. */
  iterate(isComplete = false): number {
    let read = 0
    for (const channel of this.channels)
      for (let chunks = 0; chunks < 32 && !channel.isPaused; chunks++) {
        read++
        channel.chunks++
        this.turns.received(channel, CHUNK, isComplete)
      }
    for (const action of this.#later.splice(0)) action()
    return read
  }
}

it('connections in the middle of requests receive 2 MiB in an iteration of the event loop together, each in its turn', () => {
  const sockets = new Sockets(20)
  // Each is read once before it is known to be in the middle of a request.
  expect(sockets.iterate()).toBe(32 + 19)
  for (let turn = 0; turn < 60; turn++) expect(sockets.iterate()).toBeLessThanOrEqual(32)
  const chunks = sockets.channels.map((channel) => channel.chunks)
  expect(Math.min(...chunks)).toBeGreaterThan(Math.max(...chunks) / 3)
})

it('no further connection that is in the middle of a request is read in an iteration that has received enough', () => {
  const sockets = new Sockets(400)
  // Each has received one chunk of a request, in several iterations.
  for (const channel of sockets.channels) channel.isPaused = true
  for (const channel of sockets.channels) {
    channel.isPaused = false
    sockets.turns.received(channel, 1, false)
  }
  expect(sockets.iterate()).toBe(32)
  for (let turn = 0; turn < 10; turn++) expect(sockets.iterate()).toBeLessThanOrEqual(32)
})

it('connections whose requests are complete do not wait, nor do others once they have received enough', () => {
  const sockets = new Sockets(4)
  expect(sockets.iterate(true)).toBe(4 * 32)
  expect(sockets.channels.some(({ isPaused }) => isPaused)).toBe(false)
})

it('a connection that is closed has no turn', () => {
  const sockets = new Sockets(12)
  sockets.iterate()
  for (const channel of sockets.channels) sockets.turns.remove(channel)
  for (let turn = 0; turn < 3; turn++) sockets.iterate()
  expect([...sockets.turns.waiting]).toEqual([])
})
