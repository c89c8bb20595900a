import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { expect, it } from 'vitest'
import { awaitHello } from './await-hello.ts'
import { CLOSES_PER_TURN } from './close-queue.ts'

it('closes sockets that end while they wait for a handshake in batches', async () => {
  const all = 2 * CLOSES_PER_TURN + 1
  const closedIn: number[] = []
  let [waiting, closed, turn] = [0, 0, 0]
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // A byte that begins no ClientHello is ready at once, and waits for its start.
    awaitHello(socket, { ready: () => waiting++, tooLong() {}, later: (read) => read() })
    socket.on('close', () => {
      closedIn[turn] = (closedIn[turn] ?? 0) + 1
      closed++
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const clients: Socket[] = []
  for (let i = 0; i < all; i++) {
    const client = connect(port, '127.0.0.1').on('error', () => {})
    await once(client, 'connect')
    client.resume().write('x')
    clients.push(client)
  }
  const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
  while (waiting < all) await nextTurn()
  // In one turn, so that the server sees all of them end at once.
  for (const client of clients) client.end()
  for (; closed < all; turn++) await nextTurn()
  server.close()
  expect(Math.max(...Object.values(closedIn))).toBeLessThanOrEqual(CLOSES_PER_TURN)
})
