import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { MemoryDisk } from '@zabra/runtime'
import { httpServer, nodePlatform } from '@zabra/runtime/node'
import { afterEach, expect, it } from 'vitest'
import { createServer } from '../../server.ts'
import type { Server } from '../../server-types.ts'
import { defaults, type ServerSettings } from '../../settings/index.ts'

let server: Server | undefined
const sockets: Socket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await server?.close()
  server = undefined
})

/** Starts a server whose HTTP port is open on the network of this machine, and opens a stream of its events. */
async function stream(settings: Partial<ServerSettings> = {}): Promise<Socket> {
  let port = 0
  const http: typeof httpServer = (options) => ({
    listen: async (...parameters) => {
      const listener = await httpServer(options).listen(...parameters)
      port = listener.address.port
      return listener
    },
  })
  const all = defaults({ dataDir: '/data', clientPort: 0, adminPort: 0, preAllocSizeBytes: 0, ...settings })
  server = await createServer(all, {
    ...nodePlatform({ networkFactories: { http } }),
    disk: new MemoryDisk(),
  })
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  socket.setEncoding('utf8').on('error', () => {})
  socket.write('GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return socket
}

/** Resolves to what has come once it matches. */
function until(socket: Socket, text: RegExp): Promise<string> {
  let received = ''
  return new Promise((resolve) =>
    socket.on('data', (chunk: string) => {
      received += chunk
      if (text.test(received)) resolve(received)
    }),
  )
}

it('a stream without events stays open for longer than admin.idleTimeout', async () => {
  const socket = await stream({ adminIdleTimeoutMs: 50 })
  expect(await until(socket, /(?:\n:\nid: \d+\n\n[^]*){8}/)).toMatch(
    /^HTTP\/1\.1 200 OK\r\n[^]*text\/event-stream/,
  )
  expect(socket.destroyed).toBe(false)
})

it('a stream ends when the server closes, after the events that were not sent', async () => {
  const socket = await stream()
  const ended = until(socket, /event: server.ready[^]*\r\n0\r\n\r\n$/)
  await until(socket, /event: server.ready/)
  const closed = once(socket, 'close')
  await server!.close()
  await ended
  await closed
})
