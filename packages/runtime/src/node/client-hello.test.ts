import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { connect, type ConnectionOptions } from 'node:tls'
import { afterAll, describe, expect, it } from 'vitest'
import { SeededRandom } from '../seeded-random.ts'
import { readClientHello } from './client-hello.ts'

const server = createServer().listen(0, '127.0.0.1')
afterAll(() => void server.close())

/** Returns the ClientHello that Node sends. */
async function helloOf(options: ConnectionOptions): Promise<Buffer> {
  if (!server.listening) await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', ...options }).on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [hello] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  return hello
}

/** Cuts the message of a record into records of so many bytes. */
const inRecords = (hello: Buffer, bytes: number): Buffer => {
  const message = hello.subarray(5)
  const records: Buffer[] = []
  for (let at = 0; at < message.length; at += bytes) {
    const part = message.subarray(at, at + bytes)
    records.push(Buffer.from([0x16, 3, 1, part.length >> 8, part.length & 255]), part)
  }
  return Buffer.concat(records)
}

describe('the first bytes of a TLS client', () => {
  it('are a ClientHello once they are complete, in one record or in many', async () => {
    const hello = await helloOf({})
    for (const bytes of [hello, inRecords(hello, 1), inRecords(hello, 100)]) {
      for (const end of [1, 5, 6, 9, 50, bytes.length - 1])
        expect(readClientHello(bytes.subarray(0, end)), `${end}`).toEqual({ kind: 'incomplete' })
      expect(readClientHello(bytes)).toEqual({ kind: 'hello', needsRetry: false })
    }
  })

  it('need a second ClientHello where TLS 1.3 is offered without a key share of a supported group', async () => {
    const hello = await helloOf({ ecdhCurve: 'X25519' })
    // The only group of the only key share: extension 51, 38 bytes of data, 36 of the list, group 29.
    const at = hello.indexOf(Buffer.from([0, 51, 0, 38, 0, 36, 0, 29]))
    expect(at).toBeGreaterThan(0)
    hello.writeUInt16BE(0x0104, at + 6)
    expect(readClientHello(hello)).toEqual({ kind: 'hello', needsRetry: true })
    const ofTls12 = await helloOf({ maxVersion: 'TLSv1.2' })
    expect(readClientHello(ofTls12)).toEqual({ kind: 'hello', needsRetry: false })
  })

  it('are something else when they begin no handshake, another message or an empty record', () => {
    for (const bytes of [
      [0x47, 0x45],
      [0x80, 46, 1],
      [0x16, 3, 1, 0, 4, 2, 0, 0, 0],
      [0x16, 3, 1, 0, 0],
      [0x15, 3, 1],
    ])
      expect(readClientHello(Uint8Array.from(bytes))).toEqual({ kind: 'other' })
  })

  it('are classified however they are damaged', async () => {
    const hello = await helloOf({})
    const random = new SeededRandom(7)
    for (let i = 0; i < 5000; i++) {
      const bytes = Uint8Array.from(hello)
      for (let times = 0; times < 3; times++) bytes[random.below(bytes.length)] = random.below(256)
      expect(['hello', 'incomplete', 'other']).toContain(
        readClientHello(bytes.subarray(0, random.below(2) === 0 ? bytes.length : random.below(bytes.length)))
          .kind,
      )
    }
  })
})
