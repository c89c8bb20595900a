import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { recogniseProtocol } from './foreign-protocol.ts'
import { FramedConnection } from './framed-connection.ts'

it.each([
  ['HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n', /answers with HTTP: connect to the client port/],
  ['a TLS alert', '\x15\x03\x01\x00\x02\x02\x0a', /answers with TLS: connect with TLS/],
  ['other bytes', '\xff\xff\xff\xff', /got a length of -1/],
])(
  'a client that connects to a port which answers with %s gets an error that says so',
  async (_, text, expected) => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    let accepted: Connection | undefined
    const { address } = await network.listen({ port: 0 }, (wire) => {
      accepted = wire
      wire.setHandler({ data() {}, drain() {}, closed() {} })
    })
    const causes: (Error | undefined)[] = []
    const connection = await network.connect(address)
    const options = { clock, maxFrameBytes: 1000, recogniseProtocol }
    new FramedConnection(connection, options, {
      onFrame() {},
      onConnectionLost: (_connection, cause) => void causes.push(cause),
    })
    accepted!.write(Uint8Array.from(text, (letter) => letter.charCodeAt(0)))
    await clock.untilIdle()
    expect(causes).toEqual([expect.objectContaining({ message: expect.stringMatching(expected) })])
  },
)
