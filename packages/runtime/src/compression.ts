/** Bytes in, other bytes out, in order. Use one for one stream. */
export interface ByteTransform {
  /** Takes bytes and resolves to those that are ready, perhaps none. Rejects when the input is malformed. */
  write(bytes: Uint8Array): Promise<Uint8Array>
  /** Ends the stream and resolves to what is left. Rejects when the input ends too early. */
  end(): Promise<Uint8Array>
}

/** Compression that the platform provides. */
export interface Compression {
  gzip(): ByteTransform
  gunzip(): ByteTransform
}
