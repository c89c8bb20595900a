import { createCipheriv, createHmac } from 'node:crypto'
import { expect, it } from 'vitest'
import { SeededRandom } from '../seeded-random.ts'
import { ClientFlight } from './client-flight.ts'

const HANDSHAKE = 0x16
const ENCRYPTED = 0x17
const [CLIENT_HELLO, CERTIFICATE, CERTIFICATE_VERIFY, CLIENT_KEY_EXCHANGE, FINISHED] = [1, 11, 15, 16, 20]
const SUITE = 'TLS_AES_128_GCM_SHA256'
const secret = Buffer.alloc(32, 7)

const record = (type: number, contents: Uint8Array): Buffer =>
  Buffer.concat([Buffer.of(type, 3, 3, contents.length >> 8, contents.length & 255), contents])

const message = (type: number, ...contents: number[]): Buffer =>
  Buffer.from([type, 0, contents.length >> 8, contents.length & 255, ...contents])

function derived(purpose: string, length: number): Buffer {
  const label = Buffer.from(`tls13 ${purpose}`)
  const info = Buffer.concat([Buffer.of(0, length, label.length), label, Buffer.of(0, 1)])
  return createHmac('sha256', secret).update(info).digest().subarray(0, length)
}

/** Returns a record of TLS 1.3 that is encrypted as the one with a number, with so many zeros behind its contents. */
function encrypted(number: number, contents: Uint8Array, zeros = 0, type = HANDSHAKE): Buffer {
  const iv = derived('iv', 12)
  iv[11]! ^= number
  const inner = Buffer.concat([contents, Buffer.of(type), Buffer.alloc(zeros)])
  const header = record(ENCRYPTED, Buffer.alloc(inner.length + 16)).subarray(0, 5)
  const cipher = createCipheriv('aes-128-gcm', derived('key', 16), iv)
  cipher.setAAD(header)
  return Buffer.concat([header, cipher.update(inner), cipher.final(), cipher.getAuthTag()])
}

/** Returns a flight of TLS 1.3 whose ClientHello has ended. */
function secretFlight(): ClientFlight {
  const flight = new ClientFlight()
  expect(flight.faultOf(record(HANDSHAKE, message(CLIENT_HELLO, 1, 2)))).toBeUndefined()
  flight.decryptWith(SUITE, secret)
  return flight
}

/** Messages with certificates: an empty one, and one that is malformed, which shows that it was judged. */
const none = message(CERTIFICATE, 0, 0, 0, 0)
const damaged = message(CERTIFICATE, 0, 0, 0, 9)
const MALFORMED = 'its message with certificates is malformed'

it('a flight of TLS 1.2 is over with its ClientKeyExchange, and its messages may be in records of a byte each', () => {
  const bytes = [message(CLIENT_HELLO, 5, 6), message(CERTIFICATE, 0, 0, 0), message(CLIENT_KEY_EXCHANGE, 1)]
  const flight = new ClientFlight()
  const over: boolean[] = []
  for (const byte of Buffer.concat(bytes)) {
    expect(flight.faultOf(record(HANDSHAKE, Buffer.of(byte)))).toBeUndefined()
    over.push(flight.isOver)
  }
  // The type of a message is known with its header.
  expect(over.indexOf(true)).toBe(bytes[0]!.length + bytes[1]!.length + 3)
})

it('a flight of TLS 1.3 is over with its Finished, and its messages may be in any records', () => {
  const flight = secretFlight()
  const messages = Buffer.concat([none, message(CERTIFICATE_VERIFY, 1, 2, 3), message(FINISHED, 1)])
  messages.forEach((byte, at) => {
    expect(flight.isOver).toBe(at > messages.length - 2)
    expect(flight.faultOf(encrypted(at, Buffer.of(byte), at))).toBeUndefined()
  })
  const whole = secretFlight()
  expect([whole.faultOf(encrypted(0, messages)), whole.isOver]).toEqual([undefined, true])
})

it('certificates are judged wherever they are: cut, behind others, and behind records of other kinds', () => {
  for (const cut of [1, 4, 5, 7]) {
    const flight = secretFlight()
    expect(flight.faultOf(record(0x14, Buffer.of(1)))).toBeUndefined()
    expect(flight.faultOf(encrypted(0, none))).toBeUndefined()
    expect(flight.faultOf(encrypted(1, Buffer.of(1, 0), 0, 0x15))).toBeUndefined()
    expect(flight.faultOf(encrypted(2, damaged.subarray(0, cut)))).toBeUndefined()
    expect(flight.faultOf(encrypted(3, damaged.subarray(cut)))).toBe(MALFORMED)
  }
})

it('messages behind the ClientHello in its record are refused: the next ones may have to be encrypted', () => {
  for (const behind of [Buffer.of(CERTIFICATE_VERIFY), message(CLIENT_KEY_EXCHANGE, 1)]) {
    const flight = new ClientFlight()
    const bytes = Buffer.concat([message(CLIENT_HELLO, 1, 2), behind])
    expect(flight.faultOf(record(HANDSHAKE, bytes))).toBe(
      'it has sent more than its ClientHello in one record',
    )
    expect(flight.isOver).toBe(false)
  }
})

it('the beginning of a message before the keys hides no certificates', () => {
  const flight = new ClientFlight()
  expect(flight.faultOf(record(HANDSHAKE, message(CLIENT_HELLO, 1)))).toBeUndefined()
  expect(flight.faultOf(record(HANDSHAKE, Buffer.of(CERTIFICATE_VERIFY, 0, 255, 255)))).toBeUndefined()
  flight.decryptWith(SUITE, secret)
  expect(flight.faultOf(encrypted(0, damaged))).toBe(MALFORMED)
})

it('certificates are refused by the length that their header names, before they arrive', () => {
  expect(secretFlight().faultOf(encrypted(0, Buffer.of(CERTIFICATE, 0, 0x80, 1)))).toBe(
    'it has shown certificates of 32769 bytes, and 32768 is the limit',
  )
  expect(secretFlight().faultOf(encrypted(0, Buffer.of(CERTIFICATE, 0, 0x80, 0)))).toBeUndefined()
})

it('compressed certificates are refused', () => {
  expect(secretFlight().faultOf(encrypted(0, message(25, 0, 1)))).toBe(
    'it has shown compressed certificates, for which no server asks',
  )
})

it('records that hide their contents are refused', () => {
  for (const [flight, bytes, reason] of [
    [new ClientFlight(), encrypted(0, none), 'it has sent a record that cannot be decrypted'],
    [secretFlight(), encrypted(1, none), 'it has sent a record that cannot be decrypted'],
    [secretFlight(), record(ENCRYPTED, Buffer.alloc(15)), 'it has sent a record that cannot be decrypted'],
    [secretFlight(), encrypted(0, Buffer.alloc(0), 5, 0), 'it has sent a record that cannot be decrypted'],
    [secretFlight(), record(HANDSHAKE, none), 'it has sent a message of the handshake that is not encrypted'],
    [new ClientFlight(), record(0x18, none), 'it has sent a record of the unknown type 24'],
  ] as const)
    expect(flight.faultOf(bytes)).toBe(reason)
})

it('records are judged however they are damaged', () => {
  const random = new SeededRandom(13)
  const messages = Buffer.concat([
    message(CLIENT_HELLO, 5, 6),
    none,
    damaged,
    message(CLIENT_KEY_EXCHANGE, 1),
  ])
  for (let i = 0; i < 20_000; i++) {
    const flight = i % 2 === 0 ? new ClientFlight() : secretFlight()
    for (let number = 0; number < 3; number++) {
      const bytes = Buffer.from(messages)
      for (let times = 0; times < 2; times++) bytes[random.below(bytes.length)] = random.below(256)
      const contents = bytes.subarray(random.below(bytes.length), random.below(bytes.length))
      const sent = i % 2 === 0 ? record(HANDSHAKE, contents) : encrypted(number, contents, random.below(3))
      if (random.below(8) === 0) sent[random.below(sent.length)] = random.below(256)
      const fault = flight.faultOf(sent)
      expect(fault === undefined || fault.startsWith('it')).toBe(true)
      if (fault !== undefined || flight.isOver) break
    }
  }
})
