import { connect, type Socket } from 'node:net'
import { bytes } from '../harness/bytes.ts'

const [SNAP, LEADERINFO, ACKEPOCH, OBSERVERINFO] = [15, 17, 18, 16]

/** Encodes a QuorumPacket without authentication info. */
function packet(type: number, zxid: bigint, data: Buffer): Buffer {
  const head = Buffer.alloc(16)
  head.writeInt32BE(type)
  head.writeBigInt64BE(zxid, 4)
  head.writeInt32BE(data.length, 12)
  return Buffer.concat([head, data, Buffer.from([255, 255, 255, 255])])
}

/** Reads exact sizes from a socket. */
class SocketReader {
  readonly #socket: Socket
  #buffered = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#socket = socket
  }

  async read(count: number): Promise<Buffer> {
    while (this.#buffered.length < count)
      this.#buffered = Buffer.concat([this.#buffered, await this.readAny()])
    const taken = this.#buffered.subarray(0, count)
    this.#buffered = this.#buffered.subarray(count)
    return taken
  }

  /** Resolves to the buffered bytes with the next chunk. */
  async readAny(): Promise<Buffer> {
    if (this.#buffered.length > 0) {
      const held = this.#buffered
      this.#buffered = Buffer.alloc(0)
      const chunk = await this.#next()
      return Buffer.concat([held, chunk])
    }
    return this.#next()
  }

  rest(): Buffer {
    const held = this.#buffered
    this.#buffered = Buffer.alloc(0)
    return held
  }

  #next(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const chunk = this.#socket.read() as Buffer | null
      if (chunk !== null) return resolve(chunk)
      this.#socket.once('readable', () => resolve((this.#socket.read() as Buffer | null) ?? Buffer.alloc(0)))
      this.#socket.once('end', () => reject(new Error('The leader closed the connection')))
    })
  }
}

/** Joins a leader as an empty observer. Resolves to the snapshot that the leader streams. */
export async function receiveSnapshot(
  quorumPort: number,
  serverId: number,
): Promise<{ zxid: bigint; stream: Buffer }> {
  const socket = connect({ host: '127.0.0.1', port: quorumPort })
  try {
    const input = new SocketReader(socket)
    const info = bytes().long(BigInt(serverId)).int(0x10000).long(0n).done()
    socket.write(packet(OBSERVERINFO, 0n, info))
    const leaderInfo = await nextPacket(input)
    if (leaderInfo.type !== LEADERINFO) throw new Error(`Expected LEADERINFO, got ${leaderInfo.type}`)
    socket.write(packet(ACKEPOCH, 0n, Buffer.from([0, 0, 0, 0])))
    const snap = await nextPacket(input)
    if (snap.type !== SNAP) throw new Error(`Expected SNAP, got ${snap.type}`)
    let stream = input.rest()
    for (let end = -1; ;) {
      end = stream.indexOf('\0\0\0\x0aBenWasHere', 0, 'latin1')
      if (end >= 0) return { zxid: snap.zxid, stream: stream.subarray(0, end + 14) }
      stream = Buffer.concat([stream, await input.readAny()])
    }
  } finally {
    socket.destroy()
  }
}

async function nextPacket(input: SocketReader): Promise<{ type: number; zxid: bigint }> {
  const head = await input.read(16)
  const length = head.readInt32BE(12)
  if (length > 0) await input.read(length)
  await input.read(4)
  return { type: head.readInt32BE(0), zxid: head.readBigInt64BE(4) }
}
