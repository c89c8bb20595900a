import type { Address, Connection, ConnectionHandler } from '@zabra/runtime'

/** Forwards every call to another connection. A subclass overrides what it observes or breaks. */
export class ForwardingConnection implements Connection {
  readonly remote: Address
  readonly local: Address
  protected readonly inner: Connection

  constructor(inner: Connection) {
    this.inner = inner
    this.remote = inner.remote
    this.local = inner.local
  }

  get bufferedBytes(): number {
    return this.inner.bufferedBytes
  }

  setHandler(handler: ConnectionHandler): void {
    this.inner.setHandler(handler)
  }

  write(bytes: Uint8Array): boolean {
    return this.inner.write(bytes)
  }

  pause(): void {
    this.inner.pause()
  }

  resume(): void {
    this.inner.resume()
  }

  end(): void {
    this.inner.end()
  }

  destroy(cause?: Error): void {
    this.inner.destroy(cause)
  }
}
