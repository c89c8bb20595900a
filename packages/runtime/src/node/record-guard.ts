import type { HandshakeScheduler } from './handshake-queue.ts'

/** Milliseconds between two looks at a connection, up to `CONNECTIONS_PER_LOOK` of them. */
const LOOK_MS = 100
const CONNECTIONS_PER_LOOK = 500
/**
 * Bytes of records that a client may send between two looks beyond `BYTES_PER_DATA_BYTE` for each byte of data: 2,400 KeyUpdates, of
 * which each takes 4 µs. A ping of 12 bytes takes up to 85.
 */
const MAX_BYTES_WITHOUT_DATA = 65_536
const BYTES_PER_DATA_BYTE = 8

/** What has been received on a socket. */
interface Counted {
  readonly bytesRead: number
}

interface Watched {
  /** The socket below TLS. */
  readonly raw: Counted
  readonly cut: (bytes: number) => void
  rawBytes: number
  dataBytes: number
}

/**
 * Cuts TLS connections whose clients send many records without data: KeyUpdates of TLS 1.3 come in any number and are processed
 * without an event.
 */
export class RecordGuard {
  readonly #scheduler: Pick<HandshakeScheduler, 'after'>
  /** The one that was not looked at for longest comes first. */
  readonly #watched = new Map<Counted, Watched>()
  #isScheduled = false

  constructor(scheduler: Pick<HandshakeScheduler, 'after'>) {
    this.#scheduler = scheduler
  }

  /** Watches a TLS socket until it is removed. Calls `cut` once, with the bytes of its records without data. */
  add(socket: Counted, raw: Counted, cut: (bytes: number) => void): void {
    this.#watched.set(socket, { raw, cut, rawBytes: raw.bytesRead, dataBytes: socket.bytesRead })
    this.#schedule()
  }

  remove(socket: Counted): void {
    this.#watched.delete(socket)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#scheduler.after(LOOK_MS, () => {
      this.#isScheduled = false
      this.#look()
      if (this.#watched.size > 0) this.#schedule()
    })
  }

  #look(): void {
    let left = Math.min(CONNECTIONS_PER_LOOK, this.#watched.size)
    for (const [socket, watched] of this.#watched) {
      if (left-- === 0) return
      const [rawBytes, dataBytes] = [watched.raw.bytesRead, socket.bytesRead]
      const excess = rawBytes - watched.rawBytes - BYTES_PER_DATA_BYTE * (dataBytes - watched.dataBytes)
      this.#watched.delete(socket)
      if (excess > MAX_BYTES_WITHOUT_DATA) watched.cut(excess)
      else this.#watched.set(socket, Object.assign(watched, { rawBytes, dataBytes }))
    }
  }
}
