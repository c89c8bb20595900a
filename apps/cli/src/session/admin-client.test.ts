import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { AdminClient } from './admin-client.ts'

let server: Server | undefined

afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

/** Returns a client of a server that answers as `listener` does. */
async function clientOf(listener: RequestListener, timeoutMs = 10_000): Promise<AdminClient> {
  const port = createServer(listener)
  server = port
  await new Promise<void>((resolve) => port.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(port.address() as AddressInfo).port}`
  return new AdminClient(url, { auth: [], timeoutMs, tls: {} }, new AbortController().signal)
}

const begin: RequestListener = (_, response) => void response.write('{"a":')
const read = async (chunks: AsyncIterable<Uint8Array>): Promise<void> => {
  for await (const _ of chunks);
}

describe('an answer of an HTTP port', () => {
  it('is given up where it stops between two chunks', async () => {
    const client = await clientOf(begin, 100)
    await expect(client.json('GET', '/')).rejects.toThrow('no more of the answer for 100 ms.')
  })

  it('is given up where it goes on for too long', async () => {
    const client = await clientOf((_, response) => {
      const more = (): void => void (response.destroyed || response.write(' ', () => setImmediate(more)))
      more()
    }, 500)
    const { chunks } = await client.request('GET', '/', { limit: { bytes: Infinity, ms: 0 } })
    await expect(read(chunks)).rejects.toThrow('no end of the answer within 500 ms.')
  })

  it('says when to try again where there were too many requests', async () => {
    for (const [head, advice] of [
      [{ 'retry-after': '7' }, 'Too many failed logins. Try again in 7 s.'],
      [{}, 'Too many failed logins. Try again later.'],
    ] as const) {
      const client = await clientOf((_, response) => {
        response.writeHead(429, head)
        response.end('{"title": "Too many failed logins"}')
      })
      await expect(client.json('GET', '/')).rejects.toThrow(advice)
    }
  })

  it('is given up where it is longer than it may be, also one that refuses the request', async () => {
    for (const status of [200, 500]) {
      const client = await clientOf((_, response) => {
        response.writeHead(status)
        response.end(new Uint8Array(17 << 20))
      })
      await expect(client.json('GET', '/')).rejects.toThrow('The answer of the server is too long.')
    }
  })
})
