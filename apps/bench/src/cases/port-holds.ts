import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Measures what a port gets. */
export type Measure = (what: string, disturbance: () => Promise<unknown>) => Promise<void>

export interface Ports {
  readonly client: number
  readonly webSocket: number
  readonly admin: number
}

/** Bytes that are sent of each kind of small part. */
const FLOOD_BYTES = 1 << 20
/** Connections that send them at once; fewer than `maxClientCnxns`. */
const AT_ONCE = 50
/** Connections that are closed at once. */
const CLOSED_AT_ONCE = 500
/** How long a row waits for connections that are not closed. */
const WAIT_MS = 1500

async function open(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Resolves once a socket is closed, or after a time. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, WAIT_MS)
    socket.on('close', () => {
      clearTimeout(timer)
      resolve()
    })
  })

/** Sends bytes on new connections, each followed by the rest of them. Resolves once all are closed, or after a time. */
async function send(port: number, head: string, bytes: Buffer, connections = 1): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  const left = sockets.map(closed)
  for (const socket of sockets) {
    socket.resume()
    socket.write(Buffer.concat([Buffer.from(head, 'latin1'), bytes]))
  }
  await Promise.all(left)
  for (const socket of sockets) socket.destroy()
}

/** Opens connections, some at a time, each with a request that is answered, and closes all of them at once. */
async function closeTogether(port: number, request: string, close: (socket: Socket) => void): Promise<void> {
  const sockets: Socket[] = []
  while (sockets.length < CLOSED_AT_ONCE) {
    const some = await Promise.all(Array.from({ length: AT_ONCE }, () => open(port)))
    const answered = some.map((socket) => once(socket, 'data'))
    for (const socket of some) socket.write(request)
    await Promise.all(answered)
    sockets.push(...some)
  }
  const left = sockets.map(closed)
  for (const socket of sockets) close(socket)
  await Promise.all(left)
}

const repeated = (part: Buffer | string, bytes = FLOOD_BYTES): Buffer =>
  Buffer.alloc(Math.floor(bytes / part.length) * part.length, part)

const postHead = 'POST /api/v1/backup HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n'

async function measureHttp(measure: Measure, { admin }: Ports): Promise<void> {
  const chunks = repeated('1\r\nx\r\n')
  await measure('a body over HTTP in chunks of a byte', () => send(admin, postHead, chunks))
  await measure(`${AT_ONCE} bodies over HTTP in chunks of a byte`, () =>
    send(admin, postHead, chunks.subarray(0, 65_520), AT_ONCE),
  )
  const get = repeated('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n')
  await measure('pipelined requests over HTTP', () => send(admin, '', get))
  await measure(`${AT_ONCE} × pipelined requests over HTTP`, () =>
    send(admin, '', get.subarray(0, 62_000), AT_ONCE),
  )
  const headers = repeated('a:\r\n', 16_000)
  await measure('4,000 headers over HTTP', () =>
    send(admin, 'GET / HTTP/1.1\r\nHost: a\r\n', headers, AT_ONCE),
  )
  const query = repeated('a&', 15_000).toString('latin1')
  for (const target of ['/readyz', '/commands/dump', '/api/v1/sessions'])
    await measure(`${AT_ONCE} × 7,500 parameters of ${target}`, () =>
      send(admin, `GET ${target}?${query} HTTP/1.1\r\nHost: a\r\n\r\n`, Buffer.alloc(0), AT_ONCE),
    )
  await measure(`${AT_ONCE} × an upgrade over HTTP`, () =>
    send(
      admin,
      'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
      chunks,
      AT_ONCE,
    ),
  )
}

const upgrade =
  'GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n'
/** Returns a frame of a client with a mask of zeros. */
const frame = (type: number, length: number): Buffer => {
  const bytes = Buffer.alloc(6 + length)
  bytes.set([type, 0x80 | length])
  return bytes
}

async function measureWebSocket(measure: Measure, { webSocket }: Ports): Promise<void> {
  const one = frame(0x82, 1)
  const kinds: readonly (readonly [string, Buffer, Buffer?])[] = [
    ['empty pings', frame(0x89, 0)],
    ['empty pongs', frame(0x8a, 0)],
    ['empty messages', frame(0x82, 0)],
    ['messages of a byte', one],
    ['fragments of a byte', frame(0x00, 1), frame(0x02, 1)],
    ['empty fragments', frame(0x00, 0), frame(0x02, 0)],
    ['frames of an unknown kind', frame(0x83, 0)],
    ['texts of a byte', frame(0x81, 1)],
  ]
  for (const [what, part, first = part] of kinds) {
    const flood = Buffer.concat([first, repeated(part)])
    await measure(`a MiB of ${what} over a WebSocket`, () => send(webSocket, upgrade, flood))
    await measure(`${AT_ONCE} × 64 KiB of ${what} over WebSockets`, () =>
      send(webSocket, upgrade, flood.subarray(0, 65_536), AT_ONCE),
    )
  }
  await measure('a request over HTTP in chunks of a byte to the WebSocket port', () =>
    send(webSocket, postHead, repeated('1\r\nx\r\n')),
  )
  await measure(`${CLOSED_AT_ONCE} WebSockets that are closed at once`, () =>
    closeTogether(webSocket, upgrade, (socket) => void socket.end()),
  )
  await measure(`${CLOSED_AT_ONCE} WebSockets that are reset at once`, () =>
    closeTogether(webSocket, upgrade, (socket) => void socket.resetAndDestroy()),
  )
}

/** What strangers may send to the ports of a server beside requests of ZooKeeper. */
export async function measurePorts(measure: Measure, ports: Ports): Promise<void> {
  await measureHttp(measure, ports)
  await measureWebSocket(measure, ports)
  for (const word of ['dump', 'mntr', 'wchp', 'cons'])
    await measure(`500 × ${word}`, () => send(ports.client, word, Buffer.alloc(0), 500))
}
