import { createCipheriv, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { afterEach, expect, it } from 'vitest'
import type { Listener } from '../network.ts'
import { RecordGuard } from './record-guard.ts'
import { tlsNetwork } from './tls.ts'

const keyStore = { path: new URL('../testdata/tls/server.pem', import.meta.url).pathname }
const listeners: Listener[] = []
afterEach(async () => {
  for (const listener of listeners.splice(0)) await listener.close()
})

/** Derives a key as TLS 1.3 does (HKDF-Expand-Label of RFC 8446, with SHA-256), of at most 32 bytes. */
function derived(secret: Buffer, purpose: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${purpose}`)
  const info = Buffer.concat([Buffer.of(0, length, label.length), label, Buffer.of(0, 1)])
  return createHmac('sha256', secret).update(info).digest().subarray(0, length)
}

/** Returns records with one KeyUpdate each, the first one encrypted with a secret for application data. */
function keyUpdates(first: Buffer, count: number): Buffer {
  const records: Buffer[] = []
  for (let secret = first, i = 0; i < count; i++, secret = derived(secret, 'traffic upd', 32)) {
    const message = Buffer.of(24, 0, 0, 1, 1, 0x16)
    const header = Buffer.of(0x17, 3, 3, 0, message.length + 16)
    const cipher = createCipheriv('aes-128-gcm', derived(secret, 'key', 16), derived(secret, 'iv', 12))
    cipher.setAAD(header)
    records.push(header, cipher.update(message), cipher.final(), cipher.getAuthTag())
  }
  return Buffer.concat(records)
}

/** Passes bytes through, so that others can be written to the socket below TLS. */
const passing = (socket: Socket): Duplex => {
  const duplex: Duplex = new Duplex({
    read() {},
    write: (bytes: Buffer, _, done) => void socket.write(bytes, done),
    final: (done) => done(),
  })
  socket.on('data', (bytes: Buffer) => duplex.push(bytes))
  return duplex
}

it('a client that sends KeyUpdates of TLS 1.3 without end is cut, and says why', async () => {
  const closed = new Promise<string | undefined>((resolve) => {
    void tlsNetwork({ keyStore })
      .listen({ host: '127.0.0.1', port: 0 }, (connection) =>
        connection.setHandler({ data() {}, drain() {}, closed: (error) => resolve(error?.message) }),
      )
      .then(async (listener) => {
        listeners.push(listener)
        const socket = connectPlain(listener.address.port, '127.0.0.1').on('error', () => {})
        const client = connectTls({
          socket: passing(socket),
          rejectUnauthorized: false,
          minVersion: 'TLSv1.3',
          ciphers: 'TLS_AES_128_GCM_SHA256',
        }).on('error', () => {})
        let secret = Buffer.alloc(0)
        client.on('keylog', (line) => {
          const hex = /^CLIENT_TRAFFIC_SECRET_0 \w+ (\w+)/.exec(line.toString('latin1'))?.[1]
          if (hex !== undefined) secret = Buffer.from(hex, 'hex')
        })
        await once(client, 'secureConnect')
        socket.write(keyUpdates(secret, 4000))
      })
  })
  expect(await closed).toMatch(/is cut: it has sent \d+ bytes of TLS records without data/)
})

/** A guard whose looks the test takes. */
function guarded() {
  let look = (): void => {}
  const guard = new RecordGuard({ after: (_, action) => (look = action) })
  const cut: string[] = []
  const add = (name: string) => {
    const [data, raw] = [{ bytesRead: 0 }, { bytesRead: 3000 }]
    guard.add(data, raw, (bytes) => cut.push(`${name} ${bytes}`))
    return { data, raw }
  }
  return { guard, cut, add, look: () => look() }
}

it('clients that send data in small records, in any number, are not cut', () => {
  const { cut, add, look } = guarded()
  const { data, raw } = add('pings')
  for (let i = 0; i < 5; i++) {
    data.bytesRead += 12_000
    raw.bytesRead += 85_000
    look()
  }
  expect(cut).toEqual([])
})

it('records without data between two looks count, and those of earlier ones do not', () => {
  const { guard, cut, add, look } = guarded()
  const [slow, fast, gone] = [add('slow'), add('fast'), add('gone')]
  for (let i = 0; i < 5; i++) {
    slow.raw.bytesRead += 60_000
    look()
  }
  for (const { raw } of [fast, gone]) raw.bytesRead += 70_000
  guard.remove(gone.data)
  look()
  look()
  expect(cut).toEqual(['fast 70000'])
})

it('a look visits 500 connections, and the next one those after them', () => {
  const { cut, add, look } = guarded()
  for (let i = 0; i < 600; i++) add(String(i)).raw.bytesRead += 70_000
  look()
  expect(cut).toHaveLength(500)
  look()
  expect(cut.at(-1)).toBe('599 70000')
})
