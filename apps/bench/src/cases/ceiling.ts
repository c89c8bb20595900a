import { createServer } from 'node:net'
import { OpCode } from '@zabra/protocol'
import { load } from '../load.ts'
import { loadArgs, type Case } from './case.ts'

/** The length of a frame and the header of a reply: xid, zxid, no error. */
const REPLY_BYTES = 20
/** An empty path and a stat. */
const BODY_BYTES = 72

/**
 * What the load generator can do at most: it is answered at once by something that looks at nothing. A figure of a server
 * that comes near is one of the generator.
 */
export const ceilingCase: Case = {
  name: 'ceiling',
  about: 'the most that the load generator can do, answered by something that looks at nothing',
  only: 'zabra',
  run: async ({ options: choices, note }) => {
    const server = createServer({ noDelay: true }, (socket) => {
      let greeted = false
      let rest = Buffer.alloc(0)
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
        const replies: Buffer[] = []
        let over = false
        while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
          replies.push(greeted ? reply(rest.readInt32BE(4)) : connectResponse())
          over ||= greeted && rest.readInt32BE(8) === OpCode.closeSession
          greeted = true
          rest = rest.subarray(4 + rest.readInt32BE(0))
        }
        if (over) return void socket.end(Buffer.concat(replies))
        socket.write(Buffer.concat(replies))
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const [told] = await load(`127.0.0.1:${port}`, '-m', 'set', ...loadArgs(choices), '--keep')
    note({ name: 'ceiling of the load generator', unit: 'op/s', better: 'higher' }, told!.perSecond)
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

/** Success, and a body that is long enough for whatever was asked. */
function reply(xid: number): Buffer {
  const bytes = Buffer.alloc(REPLY_BYTES + BODY_BYTES)
  bytes.writeInt32BE(bytes.length - 4, 0)
  bytes.writeInt32BE(xid, 4)
  return bytes
}
