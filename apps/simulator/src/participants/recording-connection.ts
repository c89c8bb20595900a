import {
  EventType,
  FrameSplitter,
  OpCode,
  readConnectRequest,
  readConnectResponse,
  Reader,
  readSetWatches,
  readWatcherEvent,
  Xid,
  type SetWatches,
} from '@zabra/protocol'
import type { Address, Connection, ConnectionHandler } from '@zabra/runtime'
import { hexOf, type History, type Operation, type WatchesReset } from '../history/records.ts'
import { readResult } from '../workload/codec.ts'
import type { SimulatedWorld } from '@zabra/testing'
import { decodeRequest } from './decode.ts'

export interface RecordingOptions {
  readonly world: SimulatedWorld
  readonly history: History
  /** The client that owns the connection. */
  readonly client: string
  readonly server: string
  /** Number of the connection, unique over all clients. */
  readonly connection: number
  /** Whether watches of a path are recorded: only where every watch is one-shot. */
  readonly isChecked: (path: string) => boolean
}

const LONGEST = 1 << 24

/**
 * Records the requests, replies and notifications of a library client's connection in the history, in wire order, so
 * that the checkers apply to its sessions as well.
 */
export class RecordingConnection implements Connection {
  readonly remote: Address
  readonly local: Address
  readonly #o: RecordingOptions
  readonly #inner: Connection
  readonly #sent: FrameSplitter
  readonly #received: FrameSplitter
  /** Requests without a reply, oldest first; the operation is undefined for requests that are not recorded. */
  readonly #pending: { readonly xid: number; readonly operation: Operation | undefined }[] = []
  /** Resets of watches without a reply; undefined for resets that include persistent watches. */
  readonly #rearming: (Pick<WatchesReset, 'since' | 'asked'> | undefined)[] = []
  #session = ''
  #seen = 0
  #greeting = true
  #attached = false
  #over = false

  constructor(inner: Connection, options: RecordingOptions) {
    this.#inner = inner
    this.#o = options
    this.remote = inner.remote
    this.local = inner.local
    const hear = (frame: (r: Reader) => void) => (bytes: Uint8Array, start: number, end: number) =>
      frame(new Reader(bytes.slice(start, end)))
    this.#sent = new FrameSplitter({ maxLength: LONGEST, frame: hear((r) => this.#asked(r)) })
    this.#received = new FrameSplitter({ maxLength: LONGEST, frame: hear((r) => this.#told(r)) })
  }

  get bufferedBytes(): number {
    return this.#inner.bufferedBytes
  }

  setHandler(handler: ConnectionHandler): void {
    this.#inner.setHandler({
      data: (chunk) => {
        const wasOver = this.#over
        const { events } = this.#o.history
        const before = events.length
        if (!wasOver) this.#received.push(chunk)
        handler.data(chunk)
        // A client that closes while it handles a reply does not see the notifications behind it in the same chunk.
        if (wasOver || !this.#over) return
        while (events.length > before && events.at(-1)!.kind === 'notice') events.pop()
      },
      drain: () => handler.drain(),
      closed: (cause) => {
        this.#end()
        handler.closed(cause)
      },
    })
  }

  write(bytes: Uint8Array): boolean {
    if (!this.#over) this.#sent.push(bytes)
    return this.#inner.write(bytes)
  }

  pause(): void {
    this.#inner.pause()
  }

  resume(): void {
    this.#inner.resume()
  }

  end(): void {
    this.#inner.end()
  }

  destroy(cause?: Error): void {
    this.#end()
    this.#inner.destroy(cause)
  }

  #asked(r: Reader): void {
    if (this.#greeting) {
      this.#greeting = false
      const { sessionId, lastZxidSeen } = readConnectRequest(r)
      this.#session = hexOf(sessionId)
      this.#seen = Number(lastZxidSeen)
      return
    }
    const xid = r.int()
    const type = r.int()
    if (xid === Xid.setWatches)
      return void this.#rearming.push(type === OpCode.setWatches ? this.#askedAgain(r) : undefined)
    if (xid < 0) return
    const { history, client, connection, server, world, isChecked } = this.#o
    const asked = decodeRequest(type, r)
    const request = asked && 'watch' in asked && !isChecked(asked.path) ? { ...asked, watch: false } : asked
    const common = { client, session: this.#session, connection, server, xid }
    const operation = request && history.begin({ ...common, request, invoked: world.now })
    this.#pending.push({ xid, operation })
  }

  #askedAgain(r: Reader): Pick<WatchesReset, 'since' | 'asked'> {
    const { relativeZxid, dataWatches, existWatches, childWatches } = readSetWatches(r)
    const judged = (paths: SetWatches['dataWatches']): string[] =>
      (paths ?? []).filter((path) => path !== null).filter(this.#o.isChecked)
    const asked = { data: judged(dataWatches), exist: judged(existWatches), child: judged(childWatches) }
    return { since: Number(relativeZxid), asked }
  }

  #told(r: Reader): void {
    if (!this.#attached) return this.#greeted(r)
    const xid = r.int()
    const zxid = r.longNumber()
    const err = r.int()
    if (xid === Xid.notification) return this.#notified(r)
    if (xid === Xid.setWatches) return this.#rearmed(zxid)
    if (xid < 0) return
    const { history, client, server, world } = this.#o
    const next = this.#pending.shift()
    if (next === undefined || next.xid !== xid) {
      history.violations.push(
        `${server} answered request ${xid} when ${next?.xid ?? 'none'} was next (client ${client})`,
      )
      return
    }
    const { operation } = next
    if (operation === undefined) return
    const hasBody = err === 0 || (operation.request.op === 'multi' && r.remaining > 0)
    const { result, results } = hasBody ? readResult(r, operation.request) : { result: { err }, results: [] }
    history.complete(operation, world.now, zxid, { ...result, err: err === 0 ? result.err : err }, results)
  }

  #greeted(r: Reader): void {
    const { sessionId, timeOut } = readConnectResponse(r)
    const { history, client, connection, server, world } = this.#o
    const common = { client, connection, server, at: world.now }
    if (timeOut === 0) {
      history.events.push({ kind: 'ended', ...common, session: this.#session })
      return this.#end()
    }
    const isNew = this.#session === '0'
    const session = hexOf(sessionId)
    if (!isNew && session !== this.#session)
      history.violations.push(`${server} answered with another session, ${session} (client ${client})`)
    this.#session = session
    this.#attached = true
    history.events.push({
      kind: 'attached',
      ...common,
      session,
      timeoutMs: timeOut,
      isNew,
      seen: this.#seen,
    })
  }

  #rearmed(zxid: number): void {
    const { history, client, connection, world } = this.#o
    const rearming = this.#rearming.shift()
    if (rearming === undefined) return
    const common = { client, session: this.#session, connection, at: world.now }
    history.events.push({ kind: 'rearmed', ...common, ...rearming, zxid })
  }

  #notified(r: Reader): void {
    const { type, path } = readWatcherEvent(r)
    const { history, client, connection, world, isChecked } = this.#o
    if (type === EventType.None || !isChecked(path!)) return
    const common = { client, session: this.#session, connection, at: world.now }
    history.events.push({ kind: 'notice', ...common, type, path: path! })
  }

  /** Ends the recording: requests without a reply have an unknown outcome. */
  #end(): void {
    if (this.#over) return
    this.#over = true
    for (const { operation } of this.#pending) if (operation !== undefined) operation.outcome = 'unknown'
  }
}
