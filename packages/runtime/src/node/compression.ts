import type { Gunzip, Gzip } from 'node:zlib'
import type { ByteTransform, Compression } from '../compression.ts'
import { builtinModule } from './builtin-module.ts'

/** Compression with Node's zlib, off the main thread. */
export const nodeCompression: Compression = {
  gzip: () => new ZlibTransform(builtinModule('node:zlib').createGzip()),
  gunzip: () => new ZlibTransform(builtinModule('node:zlib').createGunzip()),
}

class ZlibTransform implements ByteTransform {
  readonly #stream: Gzip | Gunzip
  #chunks: Uint8Array[] = []
  #failure: Error | undefined

  constructor(stream: Gzip | Gunzip) {
    this.#stream = stream
    stream.on('data', (chunk: Uint8Array) => this.#chunks.push(chunk))
    stream.on('error', (error: Error) => (this.#failure = error))
  }

  write(bytes: Uint8Array): Promise<Uint8Array> {
    return this.#settle((done) => this.#stream.write(bytes, done))
  }

  end(): Promise<Uint8Array> {
    return this.#settle((done) => {
      this.#stream.once('end', done)
      this.#stream.end()
    })
  }

  #settle(start: (done: (error?: Error | null) => void) => void): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#failure) return reject(this.#failure)
      const failed = (error: Error): void => reject(error)
      this.#stream.once('error', failed)
      start((error) => {
        this.#stream.off('error', failed)
        const failure = error ?? this.#failure
        if (failure) reject(failure)
        else resolve(this.#takeOutput())
      })
    })
  }

  #takeOutput(): Uint8Array {
    const chunks = this.#chunks
    this.#chunks = []
    return chunks.length === 1 ? chunks[0]! : new Uint8Array(Buffer.concat(chunks))
  }
}
