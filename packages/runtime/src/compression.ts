/** Transforms one stream of bytes. */
export interface ByteTransform {
  /** Accepts input and resolves to the output so far, which may be empty. Rejects when the input is malformed. */
  write(bytes: Uint8Array): Promise<Uint8Array>
  /** Ends the stream and resolves to the rest of the output. Rejects when the input ends too early. */
  end(): Promise<Uint8Array>
}

/** Compression of the platform. */
export interface Compression {
  gzip(): ByteTransform
  gunzip(): ByteTransform
}
