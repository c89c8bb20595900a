import { EventEmitter } from 'node:events'
import { expect, it, vi } from 'vitest'
import type { WebSocket } from 'ws'
import { ManualClock } from '../manual-clock.ts'
import { WebSocketConnection } from './connection.ts'

/** A connection whose WebSocket and socket emit what a test says, and which notes what it does to them. */
function fixture() {
  const clock = new ManualClock()
  let now = 0
  vi.spyOn(clock, 'monotonic').mockImplementation(() => now)
  const calls: string[] = []
  const webSocket = Object.assign(new EventEmitter(), {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    pause: () => calls.push('pause'),
    resume: () => calls.push('resume'),
  })
  const socket = new EventEmitter()
  const at = { host: '127.0.0.1', port: 1 }
  const connection = new WebSocketConnection(webSocket as unknown as WebSocket, {
    remote: at,
    local: at,
    isSecure: false,
    peer: undefined,
    clock,
    pingIntervalMs: 0,
    socket,
  })
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  /** Emits a chunk of empty messages that takes some milliseconds. */
  const chunk = (ms: number): void => {
    webSocket.emit('pong')
    now += ms
    socket.emit('data', Uint8Array.of(0x82, 0x80, 0, 0, 0, 0))
  }
  return { clock, calls, connection, chunk }
}

it('a turn that has read frames for 2 ms reads no further ones, and the next one goes on', async () => {
  const { clock, calls, chunk } = fixture()
  chunk(1)
  expect(calls).toEqual([])
  chunk(1)
  chunk(1)
  expect(calls).toEqual(['pause'])
  await clock.untilIdle()
  expect(calls).toEqual(['pause', 'resume'])
  chunk(1)
  await clock.untilIdle()
  expect(calls).toEqual(['pause', 'resume'])
})

it('a connection that its owner has paused stays paused in the next turn', async () => {
  const { clock, calls, connection, chunk } = fixture()
  chunk(3)
  connection.pause()
  await clock.untilIdle()
  expect(calls).toEqual(['pause', 'pause'])
  connection.resume()
  expect(calls).toEqual(['pause', 'pause', 'resume'])
})
