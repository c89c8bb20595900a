import { ManualClock, NetworkError, type Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { PendingConnections, type Refusal } from './pending-connections.ts'

/** Pending connections of a port, which send two bytes to identify themselves. */
function createPending(maxUnidentified: number, refusal?: () => Refusal) {
  const identified: string[] = []
  const closed: string[] = []
  const warnings: object[] = []
  const pending = new PendingConnections<string>({
    clock: new ManualClock(),
    logger: { error() {}, warn: (facts) => warnings.push(facts), info() {}, debug() {} },
    port: 'port',
    maxUnidentified,
    timeoutMs: 5000,
    createReader: ({ remote }) => {
      const reader = {
        received: 0,
        push(chunk: Uint8Array) {
          reader.received += chunk.length
          return reader.received >= 2 ? `${remote.host}:${remote.port}` : undefined
        },
      }
      return reader
    },
    ...(refusal === undefined ? {} : { refusal }),
    identified: (name) => identified.push(name),
  })
  /** Accepts a connection; returns a function that sends bytes on it. */
  const accept = (host: string, port: number): ((bytes?: Uint8Array) => void) => {
    let send: (chunk: Uint8Array) => void = () => {}
    pending.add({
      remote: { host, port },
      setHandler: (handler) => (send = (chunk) => handler.data(chunk)),
      write: () => true,
      end() {},
      destroy: () => closed.push(`${host}:${port}`),
    } as Partial<Connection> as Connection)
    return (bytes = new Uint8Array(1)) => send(bytes)
  }
  return { pending, identified, closed, warnings, accept }
}

it('a connection that logs in is not closed by a flood of silent ones from the same address', () => {
  const { accept, identified, closed, pending } = createPending(4)
  const send = accept('10.0.0.1', 1)
  send()
  for (let port = 2; port < 5000; port++) accept('10.0.0.1', port)
  send()
  expect([identified, closed.length, pending.size]).toEqual([['10.0.0.1:1'], 4995, 3])
})

it('refused connections that were told something keep their places until they are closed', () => {
  const { accept, identified, closed, pending } = createPending(4, () => ({
    reason: 'unknown',
    notice: new Uint8Array(1),
  }))
  for (let port = 1; port <= 1000; port++) accept('10.0.0.1', port)(new Uint8Array(2))
  expect([identified, closed.length, pending.size]).toEqual([[], 996, 4])
  pending.close()
  expect([closed.length, pending.size]).toEqual([1000, 0])
})

it('a connection is not closed by a flood from another address, whatever that sends', () => {
  const { accept, identified, closed } = createPending(4)
  const send = accept('10.0.0.1', 1)
  for (let port = 2; port < 5000; port++) accept('10.6.6.6', port)()
  send()
  send()
  expect([identified, closed[0]]).toEqual([['10.0.0.1:1'], '10.6.6.6:2'])
})

it('a connection is not closed by a flood from the addresses of one IPv6 network', () => {
  const { accept, identified, closed } = createPending(4)
  const send = accept('2001:db8::1', 1)
  send()
  for (let port = 2; port < 5000; port++) accept(`2001:db8:0:1::${port.toString(16)}`, port)()
  send()
  expect([identified, closed[0]]).toEqual([['2001:db8::1:1'], '2001:db8:0:1::2:2'])
})

it.each([
  ['TLS', '\x16\x03\x01\x02\x00\x01'],
  ['HTTP', 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['WebSocket', 'GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'],
])('a connection that begins with %s is closed, with the name of that in the log', (name, bytes) => {
  const { accept, identified, closed, warnings } = createPending(4)
  accept('10.0.0.1', 1)(new TextEncoder().encode(bytes))
  expect([identified, closed]).toEqual([[], ['10.0.0.1:1']])
  const reason = expect.stringContaining(`its first bytes are ${name}`) as string
  expect(warnings).toEqual([{ id: 'quorum.connection-closed', address: '10.0.0.1:1', reason }])
})

it('the log has a line for each address and kind of reason, so that a flood from one address hides no other', () => {
  const { accept, warnings } = createPending(4)
  const http = new TextEncoder().encode('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  for (let port = 1; port < 1000; port++) accept('10.6.6.6', port)(http)
  accept('10.6.6.6', 1000)(new TextEncoder().encode('\x16\x03\x01\x02\x00\x01'))
  accept('10.0.0.1', 1)(http)
  expect(warnings).toEqual([
    expect.objectContaining({ address: '10.6.6.6:1', reason: expect.stringMatching('HTTP') }),
    expect.objectContaining({ address: '10.6.6.6:1000', reason: expect.stringMatching('TLS') }),
    expect.objectContaining({ address: '10.0.0.1:1', reason: expect.stringMatching('HTTP') }),
  ])
})

it('the log has a line for each address whose connections the network could not accept', () => {
  const { pending, warnings } = createPending(4)
  const fail = (host: string, port: number): void =>
    pending.logFailure(
      new NetworkError(`The TLS handshake of ${host}:${port} failed`, 'EPROTO', { remote: { host, port } }),
    )
  for (let port = 1; port < 100; port++) fail('10.6.6.6', port)
  fail('10.0.0.1', 1)
  expect(warnings).toEqual([
    expect.objectContaining({ address: '10.6.6.6:1' }),
    expect.objectContaining({ address: '10.0.0.1:1' }),
  ])
})
