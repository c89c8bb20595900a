import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

/** A stream over a socket that writes to it directly, for those that pass on what it receives in a way of their own. */
export abstract class WrappedSocket extends Duplex {
  readonly source: Socket

  constructor(source: Socket, readableHighWaterMark: number) {
    super({
      readableHighWaterMark,
      writableHighWaterMark: source.writableHighWaterMark,
      allowHalfOpen: source.allowHalfOpen,
    })
    this.source = source
    // It would close at its end, while what it has received before waits for the reader.
    source.allowHalfOpen = true
    source.on('error', (error) => this.lost(error))
    source.on('close', () => {
      // After both sides have ended, Node closes the stream once its reader has read the rest.
      if (!source.readableEnded || !source.writableFinished) this.lost()
    })
  }

  /** Closes the stream: the socket has failed, or is closed. */
  protected lost(error?: Error): void {
    this.destroy(error)
  }

  get remoteAddress(): string | undefined {
    return this.source.remoteAddress
  }

  get remotePort(): number | undefined {
    return this.source.remotePort
  }

  get localAddress(): string | undefined {
    return this.source.localAddress
  }

  get localPort(): number | undefined {
    return this.source.localPort
  }

  /** Bytes received that were not passed on. */
  get heldBytes(): number {
    return heldBytesOf(this.source) + this.readableLength
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.source.write(chunk, done)
  }

  override _writev(
    chunks: readonly { readonly chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    const { source } = this
    source.cork()
    chunks.forEach(({ chunk }, index) => {
      if (index < chunks.length - 1) source.write(chunk)
      else source.write(chunk, done)
    })
    source.uncork()
  }

  override _final(done: (error?: Error | null) => void): void {
    this.source.end(done)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.source.destroy()
    done(error)
  }
}

/** The streams between sockets of TLS and those of the system. */
const below = new WeakMap<Duplex, WrappedSocket>()

/** Notes the stream from which a socket of TLS reads. */
export function setBelow(socket: Duplex, stream: WrappedSocket): void {
  below.set(socket, stream)
}

/** Returns the bytes that a socket has received, and its reader has not read. */
export const heldBytesOf = (socket: Duplex): number =>
  socket.readableLength + (below.get(socket)?.heldBytes ?? 0)
