import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { PipelineRoom, type WaitingClient } from './pipeline-room.ts'

/** A room of 100 bytes for so many servers, in which clients start requests of given sizes and note their names. */
function fixture(count = 1) {
  const later: (() => void)[] = []
  const clock = new ManualClock()
  const room = new PipelineRoom({
    clock,
    runLater: (action) => later.push(action),
    maxBytes: 100,
    servers: () => count,
  })
  const started: string[] = []
  const client = (name: string, sizes: number[]): WaitingClient => {
    const process = (): void => {
      while (sizes.length > 0 && room.admits(channel)) {
        room.take(sizes.shift()!)
        started.push(name)
      }
    }
    const channel = { requests: { process } }
    return channel
  }
  const runLater = (): void => later.splice(0).forEach((action) => action())
  return { clock, room, started, client, runLater }
}

it('a request starts as long as those before it have left room, whatever its own size', () => {
  const { room, started, client } = fixture()
  client('a', [99, 5000, 1]).requests.process()
  expect(started).toEqual(['a', 'a'])
  expect(room.size).toBe(1)
})

it('a server of three has a third of the room', () => {
  const { started, client } = fixture(3)
  client('a', [33, 1, 1]).requests.process()
  expect(started).toEqual(['a', 'a'])
})

it('connections that found no room start in the order in which they came, and none overtakes them', () => {
  const { room, started, client, runLater } = fixture()
  client('a', [100]).requests.process()
  client('b', [60, 60, 60]).requests.process()
  client('c', [10]).requests.process()
  expect(started).toEqual(['a'])
  room.release(100)
  // There is room, but for those that wait.
  client('d', [10]).requests.process()
  expect(started).toEqual(['a'])
  runLater()
  expect(started).toEqual(['a', 'b', 'b'])
  room.release(60)
  runLater()
  expect(started).toEqual(['a', 'b', 'b', 'c', 'd', 'b'])
  expect(room.size).toBe(0)
})

it('a connection that is closed waits no more', () => {
  const { room, started, client, runLater } = fixture()
  client('a', [100]).requests.process()
  const [b, c] = [client('b', [10]), client('c', [10])]
  for (const { requests } of [b, c]) requests.process()
  room.remove(b)
  room.release(100)
  runLater()
  expect(started).toEqual(['a', 'c'])
})

it('connections that wait start their requests over several turns, as long as each takes', () => {
  const { clock, room, started, client, runLater } = fixture()
  client('a', [100]).requests.process()
  for (const name of ['b', 'c', 'd', 'e']) {
    const { requests } = client(name, [10])
    const slow = {
      requests: {
        process() {
          clock.advance(1)
          requests.process()
        },
      },
    }
    // It waits in the name of the other.
    room.admits(slow)
  }
  room.release(100)
  runLater()
  expect(started).toEqual(['a', 'b', 'c'])
  runLater()
  expect(started).toEqual(['a', 'b', 'c', 'd', 'e'])
})
