import {
  FrameSplitter,
  OpCode,
  Reader,
  readConnectRequest,
  writeConnectResponse,
  Writer,
  writeWatcherEvent,
  Xid,
  type ConnectRequest,
  type ConnectResponse,
} from '@zabra/protocol'
import type { Connection, Listener } from '@zabra/runtime'
import type { ManualWorld } from './manual-world.ts'

export interface ScriptedRequest {
  readonly xid: number
  readonly type: number
  readonly body: Reader
  readonly connection: ScriptedConnection
}

/** A server whose replies a test scripts. */
export class ScriptedServer {
  #listener: Listener | undefined
  readonly connections: ScriptedConnection[] = []
  readonly connectRequests: ConnectRequest[] = []
  /** Returns overrides for the connect response; undefined closes the connection. */
  connectResponse: (connectRequest: ConnectRequest) => Partial<ConnectResponse> | undefined = () => ({})
  /** Called for every request except pings. */
  onRequest: (request: ScriptedRequest) => void = ({ xid, connection }) => connection.reply(xid)
  fourLetterReplies: Record<string, string> = {}

  static async start(world: ManualWorld, port: number): Promise<ScriptedServer> {
    const server = new ScriptedServer()
    server.#listener = await world.network.listen({ port }, (connection) => {
      server.connections.push(new ScriptedConnection(server, connection))
    })
    return server
  }

  get lastConnection(): ScriptedConnection {
    return this.connections.at(-1)!
  }

  async stop(): Promise<void> {
    await this.#listener?.close()
    for (const { raw } of this.connections) raw.destroy()
  }
}

/** One connection of a scripted server. */
export class ScriptedConnection {
  /** The connection under the frames, to send arbitrary bytes or to break it. */
  readonly raw: Connection
  readonly #server: ScriptedServer
  hasHandshake = false
  pings = 0

  constructor(server: ScriptedServer, connection: Connection) {
    this.#server = server
    this.raw = connection
    const frames = new FrameSplitter({
      maxLength: 1 << 24,
      frame: (bytes, start, end) => this.#frame(new Reader(bytes, start, end)),
    })
    connection.setHandler({
      data: (chunk) => {
        const command = new TextDecoder().decode(chunk)
        const response = this.#server.fourLetterReplies[command]
        if (response === undefined) frames.push(chunk)
        else {
          connection.write(new TextEncoder().encode(response))
          connection.end()
        }
      },
      drain() {},
      closed() {},
    })
  }

  reply(xid: number, { err = 0, zxid = 1n, body = () => {} }: ReplyParts = {}): void {
    this.raw.write(replyBytes(xid, { err, zxid, body }))
  }

  event(type: number, path: string, zxid = -1n): void {
    this.raw.write(eventBytes(type, path, zxid))
  }

  #frame(reader: Reader): void {
    if (!this.hasHandshake) return this.#handshake(readConnectRequest(reader))
    const xid = reader.int()
    const type = reader.int()
    if (type === OpCode.ping) {
      this.pings++
      return this.reply(Xid.ping)
    }
    this.#server.onRequest({ xid, type, body: reader, connection: this })
  }

  #handshake(connectRequest: ConnectRequest): void {
    this.hasHandshake = true
    this.#server.connectRequests.push(connectRequest)
    const response = this.#server.connectResponse(connectRequest)
    if (response === undefined) return this.raw.destroy()
    const w = new Writer()
    const frameStart = w.beginFrame()
    writeConnectResponse(w, {
      protocolVersion: 0,
      timeOut: connectRequest.timeOut,
      sessionId:
        connectRequest.sessionId === 0n
          ? BigInt(this.#server.connectRequests.length)
          : connectRequest.sessionId,
      passwd: new Uint8Array(16).fill(1),
      readOnly: false,
      ...response,
    })
    w.endFrame(frameStart)
    this.raw.write(w.take())
  }
}

export interface ReplyParts {
  readonly err?: number
  readonly zxid?: bigint
  readonly body?: (w: Writer) => void
}

export function replyBytes(xid: number, { err = 0, zxid = 1n, body = () => {} }: ReplyParts): Uint8Array {
  const w = new Writer()
  const frameStart = w.beginFrame()
  w.int(xid)
  w.long(zxid)
  w.int(err)
  if (err === 0) body(w)
  w.endFrame(frameStart)
  return w.take()
}

export function eventBytes(type: number, path: string, zxid: bigint): Uint8Array {
  return replyBytes(Xid.notification, { zxid, body: (w) => writeWatcherEvent(w, { type, state: 3, path }) })
}

/** Writes a Stat with the given fields and zeros. */
export function writeStat(
  w: Writer,
  { mzxid = 0n, version = 0 }: { mzxid?: bigint; version?: number } = {},
): void {
  w.long(1n)
  w.long(mzxid)
  w.long(0n)
  w.long(0n)
  w.int(version)
  w.int(0)
  w.int(0)
  w.long(0n)
  w.int(0)
  w.int(0)
  w.long(1n)
}
