import { Socket } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Connection } from '../network.ts'
import { nodeNetwork } from './index.ts'
import { closeSoon, CLOSES_PER_TURN, queueClose } from './close-queue.ts'

describe('many connections that their owner destroys at once', () => {
  it('are closed for two milliseconds of this turn, and the others in later ones', async () => {
    let [now, closed] = [0, 0]
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => clock.mockRestore())
    for (let i = 0; i < 50; i++) {
      const socket = new Socket()
      socket.destroy = () => {
        closed++
        now += 0.125
        return socket
      }
      closeSoon(socket)
    }
    const after = [closed]
    while (closed < 50) {
      await new Promise((resolve) => setImmediate(resolve))
      after.push(closed)
    }
    expect(after).toEqual([16, 32, 48, 50])
  })

  it('deliver nothing and send nothing from then on', async () => {
    let now = 0
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => clock.mockRestore())
    const accepted: Connection[] = []
    const [data, closed] = [vi.fn(), vi.fn()]
    const listener = await nodeNetwork.listen({ port: 0, host: '127.0.0.1' }, (connection) => {
      accepted.push(connection)
      connection.setHandler({ data, drain() {}, closed })
    })
    const received = vi.fn()
    const client = await nodeNetwork.connect(listener.address)
    const isClosed = new Promise((resolve) =>
      client.setHandler({ data: received, drain() {}, closed: resolve }),
    )
    while (accepted.length < 1) await new Promise((next) => setImmediate(next))
    // The time of this turn is used up by another socket.
    const other = new Socket()
    other.destroy = () => {
      now += 2
      return other
    }
    closeSoon(other)
    accepted[0]!.destroy()
    accepted[0]!.destroy()
    accepted[0]!.write(Uint8Array.of(1))
    client.write(Uint8Array.of(2))
    await isClosed
    await listener.close()
    expect([data.mock.calls, received.mock.calls, closed.mock.calls.length]).toEqual([[], [], 1])
  })
})

describe('many connections that their clients end at once', () => {
  it('are closed for two milliseconds of a turn', async () => {
    let [now, closed] = [0, 0]
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => clock.mockRestore())
    const sockets = Array.from({ length: 50 }, () => new Socket())
    for (const socket of sockets) {
      socket.destroy = () => {
        closed++
        now += 0.125
        return socket
      }
      queueClose(socket)
    }
    const after: number[] = []
    while (closed < sockets.length) {
      await new Promise((resolve) => setImmediate(resolve))
      after.push(closed)
    }
    expect(after).toEqual([16, 32, 48, 50])
  })

  it('are closed in batches, and other connections are served in between', async () => {
    const all = 3 * CLOSES_PER_TURN + 1
    const closedIn: number[] = []
    const accepted: Connection[] = []
    let [closed, turn] = [0, 0]
    let isOver = false
    const countTurns = (): void => {
      turn++
      if (!isOver) setImmediate(countTurns)
    }
    await new Promise<void>((resolve, reject) => {
      void nodeNetwork
        .listen({ port: 0, host: '127.0.0.1' }, (connection) => {
          accepted.push(connection)
          connection.setHandler({
            data() {},
            drain() {},
            closed() {
              closedIn[turn] = (closedIn[turn] ?? 0) + 1
              if (++closed === all) resolve()
            },
          })
        })
        .then(async (listener) => {
          const clients: Connection[] = []
          for (let i = 0; i < all; i++) clients.push(await nodeNetwork.connect(listener.address))
          for (const client of clients) client.setHandler({ data() {}, drain() {}, closed() {} })
          while (accepted.length < all) await new Promise((next) => setImmediate(next))
          setImmediate(countTurns)
          // In one turn, so that the server sees all of them end at once.
          for (const client of clients) client.end()
          await listener.close()
        })
        .catch(reject)
    })
    isOver = true
    expect(Math.max(...Object.values(closedIn))).toBeLessThanOrEqual(CLOSES_PER_TURN)
    expect(Object.values(closedIn).length).toBeGreaterThanOrEqual(4)
  })
})
