// oxlint-disable no-restricted-imports -- servers on real ports
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { fourLetterWord, OperationTimeoutError } from './index.ts'

const servers: Server[] = []
const sockets = new Set<Socket>()
afterEach(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

/** Starts a server that does this with what it receives; returns its address. */
async function listen(onData: (socket: Socket, text: string) => void): Promise<string> {
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk) => onData(socket, chunk.toString()))
  })
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}

it('a four-letter word resolves to the whole reply', async () => {
  const server = await listen((socket, text) => {
    socket.write(`got ${text}, `)
    socket.end('and ü'.repeat(50_000))
  })
  const reply = await fourLetterWord(server, 'mntr')
  expect(reply).toBe(`got mntr, ${'and ü'.repeat(50_000)}`)
})

it('a four-letter word rejects when no reply comes in time, by its signal, and without a server', async () => {
  const server = await listen(() => {})
  await expect(fourLetterWord(server, 'ruok', { timeoutMs: 20 })).rejects.toThrow(OperationTimeoutError)
  await expect(fourLetterWord(server, 'ruok', { timeoutMs: 20 })).rejects.toThrow(
    'did not answer ruok within 20 ms',
  )
  const abort = new AbortController()
  const asked = fourLetterWord(server, 'ruok', { signal: abort.signal })
  abort.abort()
  await expect(asked).rejects.toMatchObject({ name: 'AbortError' })
  await expect(fourLetterWord(server, 'ruok', { signal: abort.signal })).rejects.toMatchObject({
    code: 'ABORTED',
  })
  await expect(fourLetterWord('127.0.0.1:1', 'ruok')).rejects.toThrow('ECONNREFUSED')
})

it('a four-letter word is refused where it cannot be one', async () => {
  await expect(fourLetterWord('127.0.0.1:1', 'status')).rejects.toThrow('a word of four letters')
  await expect(fourLetterWord('a:1,b:1', 'ruok')).rejects.toThrow('one server, got 2')
  await expect(fourLetterWord('ws://a:1', 'ruok')).rejects.toThrow('tcp:// or tls://')
})

it('a four-letter word whose reply does not end in time rejects, and one without an end is cut at 16 MiB', async () => {
  const slow = await listen((socket) => void socket.write('a beginning'))
  await expect(fourLetterWord(slow, 'cons', { timeoutMs: 50 })).rejects.toThrow(OperationTimeoutError)
  const endless = await listen((socket) => void socket.write('x'.repeat(16 * 1024 * 1024 + 1000)))
  expect(await fourLetterWord(endless, 'cons')).toHaveLength(16 * 1024 * 1024)
})
