/** A hash that takes its input in pieces. */
export interface Hash {
  update(bytes: Uint8Array): void
  /** Returns the hash of everything so far, in hexadecimal. Call it once. */
  digest(): string
}

/** Cryptography of the platform. Inputs should be small enough for one turn of the event loop: at most some hundred KiB. */
export interface Cryptography {
  sha256(): Hash
  /** Returns the SHA-256 of some bytes, in hexadecimal. For short ones it takes less time than a `Hash`. */
  sha256Of(bytes: Uint8Array): string
  /**
   * Encrypts with AES-256-GCM and returns the ciphertext with its tag of 16 bytes at the end. A pair of `key` (32 bytes) and `nonce`
   * (12 bytes) must be used once only. `associated` is authenticated with it.
   */
  seal(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, plain: Uint8Array): Uint8Array
  /** Returns the plaintext of what `seal` returned; undefined when key, nonce, associated data or a byte differ. */
  open(key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, sealed: Uint8Array): Uint8Array | undefined
}
