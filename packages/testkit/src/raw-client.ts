import {
  OpCode,
  readConnectResponse,
  readWatcherEvent,
  Xid,
  type ConnectResponse,
  type Reader,
  type WatcherEvent,
  type Writer,
} from '@zabra/protocol'
import type { Connection } from '@zabra/runtime'
import { FramedConnection, type Handshake } from './framed-connection.ts'

export interface Reply {
  readonly xid: number
  readonly zxid: number
  readonly err: number
  readonly body: Reader
}

interface PendingReply {
  readonly resolve: (reply: Reply) => void
  readonly reject: (error: Error) => void
}

const IN_FLIGHT = 500

/**
 * One session over one connection, for requests that no client library sends. Replies come in the order of requests. It
 * never pings and never reconnects.
 */
export class RawClient {
  /** Notifications of watches, oldest first. */
  readonly notifications: WatcherEvent[] = []
  isClosed = false
  session: ConnectResponse | undefined
  readonly #frames: FramedConnection
  readonly #pending: PendingReply[] = []
  #xid = 0
  #onHandshake: (error?: Error) => void = () => {}

  constructor(connection: Connection) {
    this.#frames = new FramedConnection(connection, {
      frame: (reader) => this.#received(reader),
      closed: () => this.#closed(),
    })
  }

  /** Opens a session. Rejects when the server refuses it or closes the connection. */
  static async open(connection: Connection, handshake: Handshake = {}): Promise<RawClient> {
    const client = new RawClient(connection)
    await new Promise<void>((resolve, reject) => {
      client.#onHandshake = (error) => (error === undefined ? resolve() : reject(error))
      client.#frames.sendHandshake(handshake)
    })
    return client
  }

  /** Sends a request and resolves to its reply, whatever its error. Rejects when the connection closes first. */
  request(type: number, body?: (w: Writer) => void): Promise<Reply> {
    if (this.isClosed) return Promise.reject(new Error('The connection is closed'))
    this.#frames.sendRequest(type === OpCode.setWatches ? Xid.setWatches : ++this.#xid, type, body)
    return new Promise((resolve, reject) => this.#pending.push({ resolve, reject }))
  }

  /** Sends many requests of one type, some hundreds of them in flight at a time. */
  async requestMany(count: number, type: number, body: (w: Writer, index: number) => void): Promise<void> {
    for (let start = 0; start < count; start += IN_FLIGHT) {
      const replies: Promise<Reply>[] = []
      this.#frames.batch(() => {
        for (let index = start; index < Math.min(start + IN_FLIGHT, count); index++)
          replies.push(this.request(type, (w) => body(w, index)))
      })
      await Promise.all(replies)
    }
  }

  /** Closes the session. */
  async close(): Promise<void> {
    await this.request(OpCode.closeSession)
  }

  /** Closes the connection without closing the session, which then expires. */
  destroy(): void {
    this.#frames.destroy()
  }

  #received(reader: Reader): void {
    if (this.session === undefined) {
      this.session = readConnectResponse(reader)
      const isRefused = this.session.timeOut === 0
      return this.#onHandshake(isRefused ? new Error('The server refused the session') : undefined)
    }
    const xid = reader.int()
    const zxid = reader.longNumber()
    const err = reader.int()
    if (xid === Xid.notification) return void this.notifications.push(readWatcherEvent(reader))
    this.#pending.shift()?.resolve({ xid, zxid, err, body: reader })
  }

  #closed(): void {
    this.isClosed = true
    const error = new Error('The connection closed before the reply')
    this.#onHandshake(error)
    for (const { reject } of this.#pending.splice(0)) reject(error)
  }
}
