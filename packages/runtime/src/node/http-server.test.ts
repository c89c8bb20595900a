import { connect, type Socket } from 'node:net'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { HttpRequest, HttpResponse } from '../http.ts'
import type { Listener } from '../network.ts'
import { nodeHttpServer } from './http-server.ts'

let listener: Listener
const failures: Error[] = []
const sockets: Socket[] = []

async function serve(
  handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>,
  limits: { connections?: number; idleTimeoutMs?: number } = {},
): Promise<string> {
  listener = await nodeHttpServer().listen(
    { host: '127.0.0.1', port: 0 },
    { connections: 10, idleTimeoutMs: 60_000, ...limits },
    { handle: async (request) => handle(request), failed: (error) => void failures.push(error) },
  )
  return `http://127.0.0.1:${listener.address.port}`
}

/** Opens a connection, and resolves once the server has taken it, which answers a request on it if `isUsed`. */
async function open(request?: string): Promise<Socket> {
  const socket = connect(listener.address.port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  if (request !== undefined) {
    socket.write(request)
    await once(socket, 'data')
  }
  return socket
}

/** Resolves once a connection is closed, also by a reset. */
const reset = (socket: Socket): Promise<void> =>
  new Promise((resolve) => socket.once('close', () => resolve()))

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  failures.length = 0
  await listener.close()
})

const ask = (path = '/'): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`

it('a request reaches the handler with path, query, headers, address and body', async () => {
  const seen: unknown[] = []
  const url = await serve(async ({ method, path, query, headers, remote, isSecure, body }) => {
    let text = ''
    for await (const chunk of body) text += new TextDecoder().decode(chunk)
    seen.push([method, path, query.get('b'), headers['x-y'], remote.host, isSecure, text])
    return { status: 201, headers: { 'x-z': '1' }, body: 'made' }
  })
  const response = await fetch(`${url}/a%20b?b=c`, { method: 'POST', headers: { 'X-Y': 'v' }, body: 'text' })
  expect(seen).toEqual([['POST', '/a%20b', 'c', 'v', '127.0.0.1', false, 'text']])
  expect([response.status, response.headers.get('x-z'), await response.text()]).toEqual([201, '1', 'made'])
})

it('a body whose client ends its direction after it is read whole, however slowly, and answered', async () => {
  let text = ''
  let begun!: () => void
  const isBegun = new Promise<void>((resolve) => (begun = resolve))
  let release!: () => void
  const isReleased = new Promise<void>((resolve) => (release = resolve))
  await serve(async ({ body }) => {
    begun()
    await isReleased
    for await (const chunk of body) {
      text += new TextDecoder().decode(chunk)
      await new Promise((resolve) => setImmediate(resolve))
    }
    return { status: 200, body: `${text.length} bytes` }
  })
  const sent = 'abcdefghij'.repeat(7000)
  const socket = await open()
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.end(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${sent.length}\r\n\r\n${sent}`)
  await isBegun
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  release()
  await reset(socket)
  expect(text === sent).toBe(true)
  expect(answer).toContain('70000 bytes')
  expect(failures).toEqual([])
})

it('a body that ends early fails at once, however slowly it is read', async () => {
  let failure: unknown
  let failed!: () => void
  const isFailed = new Promise<void>((resolve) => (failed = resolve))
  await serve(async ({ body }) => {
    try {
      for await (const _ of body) await new Promise((resolve) => setImmediate(resolve))
    } catch (error) {
      failure = error
      failed()
    }
    return { status: 200 }
  })
  const socket = await open()
  socket.end(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'a'.repeat(70_000)}`)
  await isFailed
  expect(failure).toBeInstanceOf(Error)
})

it('a handler that rejects is answered with 500 and reported', async () => {
  const url = await serve(() => Promise.reject(new Error('broken')))
  const response = await fetch(url)
  expect([response.status, await response.text()]).toEqual([500, ''])
  expect(failures.map(({ message }) => message)).toEqual(['broken'])
})

it('a long body is made only as fast as the client reads, and its source is closed when the client leaves', async () => {
  let made = 0
  let closed!: () => void
  const isClosed = new Promise<void>((resolve) => (closed = resolve))
  async function* endless(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        made++
        yield new Uint8Array(64 * 1024)
      }
    } finally {
      closed()
    }
  }
  await serve(() => ({ status: 200, body: endless() }))
  const socket = await open(ask())
  socket.pause()
  // The buffers of both sockets fill up; then nothing more is made.
  let before = -1
  while (before !== made) {
    before = made
    for (let i = 0; i < 100; i++) await new Promise((resolve) => void setImmediate(resolve))
  }
  expect(made * 64 * 1024).toBeLessThan(64 * 2 ** 20)
  socket.destroy()
  await isClosed
})

it('the source of a body is closed when the client leaves, also while it waits for its next chunk', async () => {
  let closed!: () => void
  const isClosed = new Promise<void>((resolve) => (closed = resolve))
  const results = [Promise.resolve({ done: false, value: 'first' })]
  const body: AsyncIterableIterator<string> = {
    [Symbol.asyncIterator]: () => body,
    next: () => results.pop() ?? new Promise(() => {}),
    async return() {
      closed()
      return { done: true, value: undefined }
    },
  }
  await serve(() => ({ status: 200, body }))
  const socket = await open(ask())
  socket.resetAndDestroy()
  await isClosed
})

it('the chunks of a body may share one array, also small ones', async () => {
  async function* shared(): AsyncGenerator<Uint8Array> {
    const chunk = new Uint8Array(3000)
    for (let index = 0; index < 100; index++) yield chunk.fill(index)
  }
  const response = await fetch(await serve(() => ({ status: 200, body: shared() })))
  const bytes = new Uint8Array(await response.arrayBuffer())
  expect(bytes.length).toBe(300_000)
  expect(bytes.every((byte, at) => byte === Math.floor(at / 3000))).toBe(true)
})

it('a connection beyond the limit replaces the one that has been idle for longest, not one with a request in progress', async () => {
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  await serve(
    async ({ path }) => {
      if (path === '/held') await held
      return { status: 200, body: path }
    },
    { connections: 2 },
  )
  const busy = await open()
  busy.write(ask('/held'))
  const idle = await open(ask('/'))
  const idleClosed = once(idle, 'close')
  const third = await open(ask('/third'))
  await idleClosed
  expect(busy.destroyed || third.destroyed).toBe(false)
  const answer = once(busy, 'data')
  release()
  expect(String((await answer)[0])).toContain('/held')
})

it('at the limit, one with many connections loses one of its own, not that of another address', async () => {
  await serve(() => ({ status: 200 }), { connections: 4 })
  const from = async (localAddress: string): Promise<Socket> => {
    const socket = connect({ port: listener.address.port, host: '127.0.0.1', localAddress })
    sockets.push(socket)
    socket.on('error', () => {}).write(ask())
    await once(socket, 'data')
    return socket
  }
  const operator = await from('127.0.0.1')
  const closed: Promise<void>[] = []
  for (let i = 0; i < 20; i++) closed.push(reset(await from('127.0.0.2')))
  await Promise.all(closed.slice(0, 17))
  operator.write(ask())
  await once(operator, 'data')
})

it('malformed and oversized requests are answered with an error of HTTP and closed, without a report', async () => {
  await serve(() => ({ status: 200 }))
  for (const [bytes, status] of [
    ['\u0000\u0001 garbage\r\n\r\n', '400'],
    [`GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, '431'],
  ] as const) {
    const socket = await open()
    const chunks: string[] = []
    socket.on('data', (chunk) => void chunks.push(String(chunk)))
    socket.write(bytes)
    await once(socket, 'close')
    expect(chunks.join('')).toContain(` ${status} `)
  }
  expect(failures).toEqual([])
})

it('of a query of more than 64 parameters the first ones are parsed, and the handler knows that there are more', async () => {
  const url = await serve(({ query, isQueryCut }) => ({ status: 200, body: `${query.size} ${isQueryCut}` }))
  const ask = async (parameters: number): Promise<string> =>
    (await fetch(`${url}/?${'a&'.repeat(parameters - 1)}b=1`)).text()
  expect([await ask(64), await ask(65), await ask(5000)]).toEqual(['64 false', '64 true', '64 true'])
})

it('of thousands of pipelined requests those behind the first one are not even parsed', async () => {
  const requests: unknown[] = []
  const observe = (message: unknown): void => void requests.push(message)
  subscribe('http.server.request.start', observe)
  try {
    await serve(() => new Promise(() => {}))
    const socket = await open()
    const closed = reset(socket)
    socket.write(ask().repeat(5000))
    await closed
  } finally {
    unsubscribe('http.server.request.start', observe)
  }
  expect(requests.length).toBeLessThan(10)
})

it('a connection whose request is being answered is kept, however long that takes, and one that is silent is closed', async () => {
  let release!: () => void
  const isReleased = new Promise<void>((resolve) => (release = resolve))
  let begun!: () => void
  const isBegun = new Promise<void>((resolve) => (begun = resolve))
  const handle = async (): Promise<HttpResponse> => {
    begun()
    await isReleased
    return { status: 200, body: 'made' }
  }
  await serve(handle, { idleTimeoutMs: 20 })
  const waiting = await open()
  waiting.write(ask())
  await isBegun
  // The second one begins its time after the first one has ended its own.
  for (let i = 0; i < 2; i++) await reset(await open())
  release()
  const [answer] = (await once(waiting, 'data')) as [Buffer]
  expect(answer.toString()).toContain('made')
  await reset(waiting)
})

/** A promise, and the function that resolves it. */
function gate(): [Promise<void>, () => void] {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return [opened, open]
}

/** Waits for longer than the idle timeout: the second connection begins its time after the first one has ended its own. */
async function outlastIdleTimeout(): Promise<void> {
  for (let i = 0; i < 2; i++) await reset(await open())
}

it.each(['', 'first'])(
  'a connection is kept while the part of its response after "%s" is made',
  async (first) => {
    const [isReleased, release] = gate()
    const [isBegun, begun] = gate()
    async function* parts(): AsyncGenerator<string> {
      if (first !== '') yield first
      begun()
      await isReleased
      yield 'last'
    }
    await serve(() => ({ status: 200, body: parts() }), { idleTimeoutMs: 20 })
    const socket = await open()
    let answer = ''
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
    socket.write(ask())
    await isBegun
    await outlastIdleTimeout()
    release()
    await reset(socket)
    expect(answer).toContain('last')
  },
)

it('a connection is kept while its request is answered whose body was read', async () => {
  const [isReleased, release] = gate()
  const [isRead, read] = gate()
  const handle = async ({ body }: HttpRequest): Promise<HttpResponse> => {
    for await (const _ of body) continue
    read()
    await isReleased
    return { status: 200, body: 'made' }
  }
  await serve(handle, { idleTimeoutMs: 20 })
  const socket = await open()
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nbegin')
  await isRead
  await outlastIdleTimeout()
  release()
  await reset(socket)
  expect(answer).toContain('made')
})

it('a connection is closed whose client does not read a response that was made at once', async () => {
  const body = new Uint8Array(64 << 20)
  await serve(() => ({ status: 200, body }), { idleTimeoutMs: 20 })
  const socket = await open(ask())
  socket.pause()
  for (let i = 0; i < 5; i++) await outlastIdleTimeout()
  let received = 0
  socket.on('data', (chunk: Buffer) => (received += chunk.length))
  const closed = reset(socket)
  socket.resume()
  await closed
  // The socket buffers hold less than half of the body.
  expect(received).toBeLessThan(body.length / 2)
})

it('a connection is kept while the next part of its response is made, and closed once the client does not read', async () => {
  const [isReleased, release] = gate()
  const [isClosed, closed] = gate()
  async function* parts(): AsyncGenerator<string | Uint8Array> {
    try {
      yield 'first'
      await isReleased
      yield 'second'
      for (;;) yield new Uint8Array(64 * 1024)
    } finally {
      closed()
    }
  }
  await serve(() => ({ status: 200, body: parts() }), { idleTimeoutMs: 20 })
  const socket = await open()
  let answer = ''
  const hasSecond = new Promise<void>((resolve) =>
    socket.on('data', (chunk: Buffer) => {
      if (answer.length < 1000) answer += chunk.toString()
      if (!answer.includes('second')) return
      socket.pause()
      resolve()
    }),
  )
  socket.write(ask())
  await outlastIdleTimeout()
  release()
  await hasSecond
  await isClosed
})

it('a connection is kept while the server does not read the body that its client sends', async () => {
  const [isReleased, release] = gate()
  const handle = async ({ body }: HttpRequest): Promise<HttpResponse> => {
    let received = 0
    for await (const chunk of body) {
      await isReleased
      received += chunk.length
    }
    return { status: 200, body: `${received} bytes` }
  }
  await serve(handle, { idleTimeoutMs: 100 })
  const socket = await open()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n')
  socket.write(new Uint8Array(1_000_000))
  await outlastIdleTimeout()
  release()
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toContain('1000000 bytes')
})

it('a connection is kept whose body the server goes on to read when the idle timeout has passed', async () => {
  const idleTimeoutMs = 100
  let received = 0
  const handle = async ({ body }: HttpRequest): Promise<HttpResponse> => {
    for await (const chunk of body) {
      // The timeout is due before the socket is read again.
      if (received === 0) for (const end = performance.now() + 2 * idleTimeoutMs; performance.now() < end;);
      received += chunk.length
    }
    return { status: 200, body: 'read' }
  }
  await serve(handle, { idleTimeoutMs })
  const socket = await open()
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  const closed = reset(socket)
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n')
  socket.write(new Uint8Array(100_000))
  await closed
  expect(answer).toContain('read')
})

it('a connection is closed while the server waits for a body of which nothing comes any more', async () => {
  await serve(
    async ({ body }) => {
      for await (const _ of body) continue
      return { status: 200 }
    },
    { idleTimeoutMs: 20 },
  )
  const socket = await open()
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbegin')
  await reset(socket)
})

it('closing the listener closes idle connections at once', async () => {
  await serve(() => ({ status: 200 }))
  const socket = await open(ask())
  const closed = once(socket, 'close')
  await listener.close()
  await closed
})

it('a connection that sends requests without waiting for their responses is closed, with one request begun', async () => {
  let begun = 0
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  await serve(async () => {
    begun++
    await held
    return { status: 200 }
  })
  const socket = await open()
  const closed = reset(socket)
  socket.write(ask().repeat(1000))
  await closed
  expect(begun).toBe(1)
  release()
})

describe('a connection is closed', () => {
  const seconds = async (count: number): Promise<void> => {
    vi.advanceTimersByTime(count * 1000)
    // What the timers have begun takes place on sockets.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
  }
  afterEach(() => void vi.useRealTimers())

  it.each([
    ['10 s after it was opened, while its headers are incomplete', 'GET / HTTP/1.1\r\nHost: a\r\n', 10],
    [
      '60 s after its headers, while its body is incomplete',
      'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1',
      60,
    ],
  ])('%s', async (_, request, limit) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let isHandled = false
    await serve(
      async ({ body }) => {
        isHandled = true
        for await (const _chunk of body) continue
        return { status: 200 }
      },
      { idleTimeoutMs: 1_000_000 },
    )
    const socket = await open()
    // The server resets the connection.
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(request)
    if (limit === 60) while (!isHandled) await new Promise((resolve) => setImmediate(resolve))
    await seconds(limit - 1)
    expect(socket.destroyed).toBe(false)
    // One byte more does not extend the time.
    socket.write('2')
    await seconds(1)
    await closed
  })

  it('60 s after the server has begun to read a body that is incomplete, not before', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const [isReleased, release] = gate()
    const [isBegun, begun] = gate()
    await serve(
      async ({ body }) => {
        begun()
        await isReleased
        for await (const _ of body) continue
        return { status: 200 }
      },
      { idleTimeoutMs: 1_000_000 },
    )
    const socket = await open()
    const closed = reset(socket)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n1')
    await isBegun
    await seconds(59)
    release()
    // The server has begun to read by then.
    await seconds(0)
    await seconds(59)
    expect(socket.destroyed).toBe(false)
    await seconds(1)
    await closed
  })

  it('60 s after the last 4 MiB of a long body', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let received = 0
    await serve(
      async ({ body }) => {
        for await (const chunk of body) received += chunk.length
        return { status: 200 }
      },
      { idleTimeoutMs: 1_000_000 },
    )
    const socket = await open()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n')
    const part = 5 << 20
    for (let sent = part; sent <= 2 * part; sent += part) {
      socket.write(new Uint8Array(part))
      while (received < sent) await new Promise((resolve) => setImmediate(resolve))
      await seconds(60)
      expect(socket.destroyed).toBe(false)
    }
    await seconds(60)
    await closed
  })
})
