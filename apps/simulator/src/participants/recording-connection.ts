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
import type { Connection, ConnectionHandler } from '@zabra/runtime'
import { ForwardingConnection } from '@zabra/testkit'
import { hexOf, type History, type Operation, type WatchesReset } from '../history/records.ts'
import { readResult } from '../workload/codec.ts'
import type { SimulatedWorld } from '@zabra/testing'
import { decodeRequest } from './decode.ts'

export interface RecordingOptions {
  readonly world: Pick<SimulatedWorld, 'now'>
  readonly history: History
  /** The client that owns the connection. */
  readonly client: string
  readonly server: string
  /** Number of the connection, unique over all clients. */
  readonly connection: number
  /** Whether watches of a path are recorded: only where every watch is one-shot. */
  readonly isChecked: (path: string) => boolean
}

const MAX_FRAME_BYTES = 1 << 24

/**
 * Records the requests, replies and notifications of a library client's connection in the history, in wire order, so
 * that the checkers apply to its sessions as well.
 */
export class RecordingConnection extends ForwardingConnection {
  readonly #options: RecordingOptions
  readonly #sent: FrameSplitter
  readonly #received: FrameSplitter
  /** Requests without a reply, oldest first; the operation is undefined for requests that are not recorded. */
  readonly #pending: { readonly xid: number; readonly operation: Operation | undefined }[] = []
  /** When the pings without an answer were sent. */
  readonly #pings: number[] = []
  /** Resets of watches without a reply; undefined for resets that include persistent watches. */
  readonly #resets: (Pick<WatchesReset, 'since' | 'requested'> | undefined)[] = []
  #session = ''
  #lastZxidSeen = 0
  #isHandshake = true
  #attached = false
  #isEnded = false

  constructor(inner: Connection, options: RecordingOptions) {
    super(inner)
    this.#options = options
    const reading = (frame: (r: Reader) => void) => (bytes: Uint8Array, start: number, end: number) =>
      frame(new Reader(bytes.slice(start, end)))
    this.#sent = new FrameSplitter({
      maxLength: MAX_FRAME_BYTES,
      frame: reading((r) => this.#handleRequest(r)),
    })
    this.#received = new FrameSplitter({
      maxLength: MAX_FRAME_BYTES,
      frame: reading((r) => this.#handleFrame(r)),
    })
  }

  override setHandler(handler: ConnectionHandler): void {
    this.inner.setHandler({
      data: (chunk) => {
        const wasEnded = this.#isEnded
        const { events } = this.#options.history
        const before = events.length
        if (!wasEnded) this.#received.push(chunk)
        handler.data(chunk)
        // A client that closes while it handles a reply does not see the notifications behind it in the same chunk.
        if (wasEnded || !this.#isEnded) return
        while (events.length > before && events.at(-1)!.kind === 'notice') events.pop()
      },
      drain: () => handler.drain(),
      closed: (cause) => {
        this.#end()
        handler.closed(cause)
      },
    })
  }

  override write(bytes: Uint8Array): boolean {
    if (!this.#isEnded) this.#sent.push(bytes)
    return this.inner.write(bytes)
  }

  override destroy(cause?: Error): void {
    this.#end()
    this.inner.destroy(cause)
  }

  #handleRequest(r: Reader): void {
    if (this.#isHandshake) {
      this.#isHandshake = false
      const { sessionId, lastZxidSeen } = readConnectRequest(r)
      this.#session = hexOf(sessionId)
      this.#lastZxidSeen = Number(lastZxidSeen)
      return
    }
    const xid = r.int()
    const type = r.int()
    if (xid === Xid.setWatches)
      return void this.#resets.push(type === OpCode.setWatches ? this.#readReset(r) : undefined)
    if (xid === Xid.ping) this.#pings.push(this.#options.world.now)
    if (xid < 0) return
    const { history, client, connection, server, world, isChecked } = this.#options
    const requested = decodeRequest(type, r)
    const request =
      requested && 'watch' in requested && !isChecked(requested.path)
        ? { ...requested, watch: false }
        : requested
    const common = { client, session: this.#session, connection, server, xid }
    const operation = request && history.begin({ ...common, request, invoked: world.now })
    this.#pending.push({ xid, operation })
  }

  #readReset(r: Reader): Pick<WatchesReset, 'since' | 'requested'> {
    const { relativeZxid, dataWatches, existWatches, childWatches } = readSetWatches(r)
    const checked = (paths: SetWatches['dataWatches']): string[] =>
      (paths ?? []).filter((path) => path !== null).filter(this.#options.isChecked)
    const requested = {
      data: checked(dataWatches),
      exist: checked(existWatches),
      child: checked(childWatches),
    }
    return { since: Number(relativeZxid), requested }
  }

  #handleFrame(r: Reader): void {
    if (!this.#attached) return this.#handleConnectResponse(r)
    const xid = r.int()
    const zxid = r.longNumber()
    const err = r.int()
    if (xid === Xid.notification) return this.#handleNotification(r)
    if (xid === Xid.setWatches) return this.#handleReset(zxid)
    const { history, client, server, world } = this.#options
    if (xid === Xid.ping) history.pings.push({ session: this.#session, sent: this.#pings.shift()! })
    if (xid < 0) return
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
    history.complete(operation, world.now, zxid, err === 0 ? result : { ...result, err }, results)
  }

  #handleConnectResponse(r: Reader): void {
    const { sessionId, timeOut } = readConnectResponse(r)
    const { history, client, connection, server, world } = this.#options
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
      seen: this.#lastZxidSeen,
    })
  }

  #handleReset(zxid: number): void {
    const { history, client, connection, world } = this.#options
    const rearming = this.#resets.shift()
    if (rearming === undefined) return
    const common = { client, session: this.#session, connection, at: world.now }
    history.events.push({ kind: 'rearmed', ...common, ...rearming, zxid })
  }

  #handleNotification(r: Reader): void {
    const { type, path } = readWatcherEvent(r)
    const { history, client, connection, world, isChecked } = this.#options
    if (type === EventType.None || !isChecked(path!)) return
    const common = { client, session: this.#session, connection, at: world.now }
    history.events.push({ kind: 'notice', ...common, type, path: path! })
  }

  /** Ends the recording: requests without a reply have an unknown outcome. */
  #end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    for (const { operation } of this.#pending) if (operation !== undefined) operation.outcome = 'unknown'
  }
}
