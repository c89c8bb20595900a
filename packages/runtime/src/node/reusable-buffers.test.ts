// oxlint-disable no-restricted-imports -- a test of the sockets underneath
import { Socket } from 'node:net'
import { expect, it } from 'vitest'
import type { Connection } from '../network.ts'
import { nodeNetwork } from './index.ts'
import { SocketConnection } from './socket-connection.ts'

const PIECE = 64 * 1024

/** Sends pieces from one array, or from a new one while the old one must not be reused. Returns the bytes received. */
async function sent(pieces: number, slow: boolean): Promise<{ arrived: number[]; reused: number }> {
  const arrived: number[] = []
  let accepted: Connection | undefined
  let done = (): void => {}
  const all = new Promise<void>((resolve) => (done = resolve))
  const listener = await nodeNetwork.listen({ host: '127.0.0.1', port: 0 }, (connection) => {
    accepted = connection
    let bytes = 0
    connection.setHandler({
      data(chunk) {
        // Each piece repeats one byte, so checking each multiple of its size is enough.
        for (let at = (PIECE - (bytes % PIECE)) % PIECE; at < chunk.length; at += PIECE)
          arrived.push(chunk[at]!)
        bytes += chunk.length
        if (bytes === pieces * PIECE) done()
      },
      drain() {},
      closed() {},
    })
    if (slow) connection.pause()
  })
  const connection = await nodeNetwork.connect(listener.address)
  connection.setHandler({ data() {}, drain() {}, closed() {} })
  let array = new Uint8Array(PIECE)
  let reused = 0
  for (let piece = 0; piece < pieces; piece++) {
    array.fill(piece)
    connection.write(array)
    if (connection.canReuseBuffers === true) reused++
    else array = new Uint8Array(PIECE)
  }
  while (accepted === undefined) await new Promise((next) => setImmediate(next))
  if (slow) accepted.resume()
  await all
  for (const one of [connection, accepted]) one.destroy()
  await listener.close()
  return { arrived, reused }
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, piece) => piece & 0xff)

it('canReuseBuffers is true once an array may be overwritten without changing what was sent', async () => {
  const { arrived, reused } = await sent(3, false)
  expect(arrived).toEqual(numbers(3))
  expect(reused).toBeGreaterThan(0)
})

it('canReuseBuffers is false while the peer does not read, and nothing is lost', async () => {
  const { arrived, reused } = await sent(250, true)
  expect(arrived).toEqual(numbers(250))
  expect(reused).toBeLessThan(250)
})

it('canReuseBuffers is always false over TLS, which may keep bytes to encrypt later', () => {
  expect(new SocketConnection(new Socket(), { transport: 'tls' }).canReuseBuffers).toBe(false)
})
