import {
  ManualClock,
  NetworkError,
  type Connection,
  type ConnectionHandler,
  type Network,
} from '@zabra/runtime'
import { expect, it } from 'vitest'
import { withPlaintextProbe } from './plaintext-probe.ts'

const TO = { host: 'localhost', port: 1 }

/** Returns a TLS network that is cut off, over servers that do with each plain connection what `answer` does. */
function cutOff(
  answer: (handler: ConnectionHandler) => void,
  clock = new ManualClock(),
): Pick<Network, 'connect'> {
  const plain = {
    async connect(): Promise<Connection> {
      let handler: ConnectionHandler
      return {
        setHandler: (given: ConnectionHandler) => void (handler = given),
        write: () => (answer(handler), true),
        destroy() {},
      } as unknown as Connection
    },
  } as unknown as Network
  const secure = {
    connect: () => Promise.reject(new NetworkError('cut off', 'ECONNRESET')),
  } as unknown as Network
  return withPlaintextProbe(secure, plain, clock)
}

const sayImok = (handler: ConnectionHandler): void => handler.data(new TextEncoder().encode('imok'))

it('an aborted attempt does not settle whether the server answers in plaintext', async () => {
  let connections = 0
  const network = cutOff((handler) => {
    if (++connections >= 2) sayImok(handler)
  })
  const first = new AbortController()
  const aborted = network.connect(TO, { signal: first.signal })
  setImmediate(() => first.abort())
  await expect(aborted).rejects.toMatchObject({ code: 'ECONNRESET' })
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'EPROTO' })
})

it('an attempt ends with its own signal while another one waits for the same server', async () => {
  const network = cutOff(() => {})
  const other = new AbortController()
  const waiting = network.connect(TO, { signal: other.signal })
  const own = new AbortController()
  const attempt = network.connect(TO, { signal: own.signal })
  setImmediate(() => own.abort())
  await expect(attempt).rejects.toMatchObject({ code: 'ECONNRESET' })
  other.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'ECONNRESET' })
})

it('a server that was started again without TLS is asked again after a minute', async () => {
  const clock = new ManualClock()
  let isText = false
  const network = cutOff((handler) => (isText ? sayImok(handler) : handler.closed()), clock)
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'ECONNRESET' })
  isText = true
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'ECONNRESET' })
  clock.advance(60_000)
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'EPROTO' })
})
