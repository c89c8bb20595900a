import type { Gunzip, Gzip } from 'node:zlib'
import type { ByteTransform, Compression } from '../compression.ts'
import { builtinModule } from './builtin-module.ts'

/** Bytes of an array of output. Node allocates another one when it is full. */
const OUTPUT_BYTES = 1 << 16

/** Compression with Node's zlib, off the main thread. */
export const nodeCompression: Compression = {
  gzip: () => new ZlibTransform(builtinModule('node:zlib').createGzip({ chunkSize: OUTPUT_BYTES })),
  gunzip: () => new ZlibTransform(builtinModule('node:zlib').createGunzip({ chunkSize: OUTPUT_BYTES })),
}

class ZlibTransform implements ByteTransform {
  readonly #stream: Gzip | Gunzip
  #chunks: Uint8Array[] = []
  #failure: Error | undefined
  #isOver = false

  constructor(stream: Gzip | Gunzip) {
    this.#stream = stream
    stream.once('end', () => (this.#isOver = true))
    stream.on('data', (chunk: Uint8Array) => this.#chunks.push(chunk))
    stream.on('error', (error: Error) => (this.#failure = error))
  }

  write(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#settle((done) => this.#stream.write(bytes, done))
  }

  end(): Promise<Uint8Array> {
    return this.#settle(() => this.#stream.end())
  }

  #settle(start: (done: (error?: Error | null) => void) => void): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure)
      // What follows the end of the compressed bytes is ignored, as by Java.
      if (this.#isOver) return resolve(this.#takeOutput())
      const done = (error?: Error | null): void => {
        this.#stream.off('error', done).off('end', done)
        const failure = error ?? this.#failure
        if (failure) reject(failure)
        else resolve(this.#takeOutput())
      }
      // Zero bytes behind the compressed ones end the stream, and Node does not call the callback of their `write`.
      this.#stream.once('error', done).once('end', done)
      start(done)
    })
  }

  #takeOutput(): Uint8Array {
    const chunks = this.#chunks
    this.#chunks = []
    if (chunks.length === 1) return chunks[0]!
    const all = Buffer.concat(chunks)
    return new Uint8Array(all.buffer, all.byteOffset, all.length)
  }
}
