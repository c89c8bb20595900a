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

/** Returns a TLS network that is cut off, over servers that answer in plaintext from the connection `answering` on. */
function cutOff(answering: number, clock = new ManualClock()): Pick<Network, 'connect'> {
  let connections = 0
  const plain = {
    async connect(): Promise<Connection> {
      const answers = ++connections >= answering
      let handler: ConnectionHandler
      return {
        setHandler: (given: ConnectionHandler) => void (handler = given),
        write: () => answers && (handler.data(new TextEncoder().encode('imok')), true),
        destroy() {},
      } as unknown as Connection
    },
  } as unknown as Network
  const secure = {
    connect: () => Promise.reject(new NetworkError('cut off', 'ECONNRESET')),
  } as unknown as Network
  return withPlaintextProbe(secure, plain, clock)
}

it('an aborted attempt does not settle whether the server answers in plaintext', async () => {
  const network = cutOff(2)
  const first = new AbortController()
  const aborted = network.connect(TO, { signal: first.signal })
  setImmediate(() => first.abort())
  await expect(aborted).rejects.toMatchObject({ code: 'ECONNRESET' })
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'EPROTO' })
})

it('an attempt ends with its own signal while another one waits for the same server', async () => {
  const network = cutOff(Infinity)
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
  const plain = {
    async connect(): Promise<Connection> {
      let handler: ConnectionHandler
      return {
        setHandler: (given: ConnectionHandler) => void (handler = given),
        write: () => (isText ? handler.data(new TextEncoder().encode('imok')) : handler.closed()),
        destroy() {},
      } as unknown as Connection
    },
  } as unknown as Network
  const secure = {
    connect: () => Promise.reject(new NetworkError('cut off', 'ECONNRESET')),
  } as unknown as Network
  const network = withPlaintextProbe(secure, plain, clock)
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'ECONNRESET' })
  isText = true
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'ECONNRESET' })
  clock.advance(60_000)
  await expect(network.connect(TO)).rejects.toMatchObject({ code: 'EPROTO' })
})
