import { createServer } from 'node:net'
import { OpCode } from '@zabra/protocol'
import { load } from '../load.ts'
import { loadArgs, type Case } from './case.ts'

/** Frame length and reply header: xid, zxid, error code. */
const REPLY_BYTES = 20
/** An empty path and a stat. */
const BODY_BYTES = 72

/**
 * Measures the ceiling of the load generator against a server that replies at once without processing. A server's figure near
 * this ceiling measures the generator.
 */
export const ceilingCase: Case = {
  name: 'ceiling',
  about: 'the throughput ceiling of the load generator, against a server that does no work',
  only: 'zabra',
  run: async ({ options, note }) => {
    const server = createServer({ noDelay: true }, (socket) => {
      let isConnected = false
      let rest = Buffer.alloc(0)
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
        const replies: Buffer[] = []
        let isClosing = false
        while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
          replies.push(isConnected ? reply(rest.readInt32BE(4)) : connectResponse())
          isClosing ||= isConnected && rest.readInt32BE(8) === OpCode.closeSession
          isConnected = true
          rest = rest.subarray(4 + rest.readInt32BE(0))
        }
        if (isClosing) return void socket.end(Buffer.concat(replies))
        socket.write(Buffer.concat(replies))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const [result] = await load(`127.0.0.1:${port}`, '-m', 'set', ...loadArgs(options), '--keep')
    note({ name: 'ceiling of the load generator', unit: 'op/s', better: 'higher' }, result!.perSecond)
    await new Promise((resolve) => server.close(resolve))
  },
}

function connectResponse(): Buffer {
  const bytes = Buffer.alloc(4 + 37)
  bytes.writeInt32BE(37, 0)
  bytes.writeInt32BE(30_000, 8)
  bytes.writeInt32BE(16, 20)
  return bytes
}

/** Builds a success reply with a body that is long enough for every request type. */
function reply(xid: number): Buffer {
  const bytes = Buffer.alloc(REPLY_BYTES + BODY_BYTES)
  bytes.writeInt32BE(bytes.length - 4, 0)
  bytes.writeInt32BE(xid, 4)
  return bytes
}
