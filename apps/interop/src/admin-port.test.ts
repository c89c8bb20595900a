import { createHash, randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { until } from './ensemble/ensemble.ts'
import { bytes } from './harness/bytes.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { freePort } from './harness/ports.ts'
import { isLong } from './harness/requirements.ts'
import { Server } from './harness/servers.ts'

/** In the long form: as in the acceptance of the HTTP port. */
const NODES = isLong ? 1_000_000 : 10_000
const NODE_BYTES = isLong ? 100 : 1000
const WATCHERS = isLong ? 50 : 4
const WATCHES_EACH = isLong ? 20_000 : 10_000
const RANDOM_REQUESTS = isLong ? 10_000 : 500
const IDLE = 500
const READERS = 20
const AT_ONCE = 1000
const MIB = 2 ** 20
/** Clients of these tests send no pings. */
const SESSION_MS = 600_000
const LONG = { timeout: isLong ? 600_000 : 120_000 }

let server: Server
let adminPort: number
let client: Client
const sockets: Socket[] = []

/** Opens a connection to the HTTP port, sends this, and reads nothing. */
function open(text: string | Uint8Array = ''): Socket {
  const socket = connect(adminPort, '127.0.0.1').on('error', () => {})
  sockets.push(socket)
  socket.pause()
  if (text.length > 0) socket.write(text)
  return socket
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`

const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()))

/** Sends this, and resolves to what the server sends until it closes the connection, or answers. */
async function answerTo(request: Uint8Array): Promise<string> {
  const socket = open(request)
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
    socket.destroy()
  })
  socket.resume()
  socket.end()
  await closed(socket)
  return text
}

/** Sends requests of a kind, some of them at once. */
async function requestAll(
  by: Client,
  count: number,
  type: number,
  body: (index: number) => Buffer,
): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE) {
    const size = Math.min(AT_ONCE, count - from)
    const replies = await Promise.all(
      Array.from({ length: size }, (_, index) => by.request(type, body(from + index))),
    )
    expect(replies.filter(({ err }) => err === 0)).toHaveLength(size)
  }
}

beforeAll(async () => {
  adminPort = await freePort()
  server = await Server.start({
    kind: 'zabra',
    config: {
      'admin.enableServer': 'true',
      'admin.serverPort': adminPort,
      'admin.role.admin': 'ip:127.0.0.1',
      'admin.rateLimiterIntervalInMS': 0,
      maxSessionTimeout: SESSION_MS,
    },
  })
  client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
})
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
})
afterAll(() => server[Symbol.asyncDispose]())

/** Waits until the server has closed what a test has opened. */
const released = (descriptors: number): Promise<void> =>
  until('the closing of files and sockets', async () => server.openDescriptors <= descriptors)

describe('the HTTP port', () => {
  it('answers beside 500 idle connections, of which clients notice nothing', LONG, async () => {
    const before = server.openDescriptors
    const idle = Array.from({ length: IDLE }, () => open())
    await Promise.all(
      idle.map((socket) => new Promise((resolve) => socket.once('connect', resolve).once('close', resolve))),
    )
    const times: number[] = []
    for (let ask = 0; ask < 20; ask++) {
      const begun = performance.now()
      expect((await fetch(`http://127.0.0.1:${adminPort}/livez`)).status).toBe(200)
      times.push(performance.now() - begun)
      await client.set('/', '')
    }
    // The fastest of many: on a busy machine each of them may wait for the processor.
    expect(Math.min(...times)).toBeLessThan(100)
    for (const socket of idle) socket.destroy()
    await released(before + 10)
  })

  it(
    `answers ${RANDOM_REQUESTS} requests of random bytes with 400, or closes, and logs nothing of them`,
    LONG,
    async () => {
      const lines = server.output
      const answers = new Set<string>()
      for (let sent = 0; sent < RANDOM_REQUESTS; sent += 20) {
        const requests = Array.from({ length: 20 }, (_, index) => {
          // Every other one begins as a request does.
          const head = index % 2 === 0 ? '' : 'GET /commands/\0'
          return Buffer.concat([
            Buffer.from(head),
            randomBytes(1 + ((sent + index) % 600)),
            Buffer.from('\r\n\r\n'),
          ])
        })
        for (const answer of await Promise.all(requests.map(answerTo))) answers.add(answer.split('\r\n')[0]!)
      }
      const statuses = [...answers].map((line) => line.replace(/^HTTP\/1\.1 (\d{3}).*/, '$1')).toSorted()
      expect(statuses.filter((status) => status !== '' && status !== '400')).toEqual([])
      await client.set('/', '')
      expect(server.output).toBe(lines)
    },
  )

  it(
    'streams a snapshot with bounded memory, and leaves no file open where readers leave',
    LONG,
    async () => {
      await client.create('/many')
      const data = 'x'.repeat(NODE_BYTES)
      await requestAll(client, NODES, op.create, (index) =>
        bytes().str(`/many/${index}`).buffer(data).int(1).int(31).str('world').str('anyone').int(0).done(),
      )
      const path = '/commands/snapshot?streaming=true'
      const stream = async (): Promise<[size: number, sum: string]> => {
        const response = await fetch(`http://127.0.0.1:${adminPort}${path}`)
        expect(response.status).toBe(200)
        const sum = createHash('sha256')
        let size = 0
        for await (const chunk of response.body!) {
          size += (chunk as Uint8Array).length
          sum.update(chunk as Uint8Array)
        }
        expect(size).toBe(Number(response.headers.get('snapshot_size')))
        return [size, sum.digest('hex')]
      }
      const [size] = await stream()
      expect(size).toBeGreaterThan(NODES * NODE_BYTES)
      const descriptors = server.openDescriptors
      const resident = server.residentBytes
      let most = resident
      const watch = setInterval(() => (most = Math.max(most, server.residentBytes)), 20)
      const readers = Array.from({ length: READERS / 4 }, () => open(get(path)))
      for (const socket of readers) await new Promise((resolve) => socket.once('readable', resolve))
      await client.set('/', '')
      await stream()
      clearInterval(watch)
      console.log(
        `a snapshot of ${Math.round(size / MIB)} MiB: ${Math.round((most - resident) / MIB)} MiB more resident`,
      )
      if (isLong) expect(most - resident).toBeLessThan(64 * MIB)
      for (const socket of readers) socket.destroy()
      await released(descriptors)
    },
  )

  it(
    `answers watches by session to ${READERS} readers of a kilobyte at a time, with bounded memory`,
    LONG,
    async () => {
      const watchers: Client[] = []
      for (let index = 0; index < WATCHERS; index++) {
        const watcher = await Client.connect(server.port, { timeoutMs: SESSION_MS })
        watchers.push(watcher)
        await requestAll(watcher, WATCHES_EACH, op.addWatch, (watch) =>
          bytes()
            .str(`/watched/${'w'.repeat(80)}/${index}/${watch}`)
            .int(0)
            .done(),
        )
      }
      const path = '/commands/watches'
      const whole = (await (await fetch(`http://127.0.0.1:${adminPort}${path}`)).text()).length
      expect(whole).toBeGreaterThan(WATCHERS * WATCHES_EACH * 90)
      const resident = server.residentBytes
      const readers = Array.from({ length: READERS }, () => open(get(path)))
      for (const socket of readers) await new Promise((resolve) => socket.once('readable', resolve))
      let most = resident
      for (let round = 0; round < 50; round++) {
        for (const socket of readers) socket.read(1024)
        for (const one of [client, ...watchers]) await one.set('/', '')
        most = Math.max(most, server.residentBytes)
      }
      expect(readers.filter((socket) => socket.destroyed)).toEqual([])
      const more = most - resident
      console.log(
        `${READERS} answers of ${Math.round(whole / MIB)} MiB: ${Math.round(more / MIB)} MiB more resident`,
      )
      // All of them at once would take READERS times as much.
      expect(more).toBeLessThan(Math.max(64 * MIB, whole))
      for (const watcher of watchers) watcher.drop()
    },
  )
})
