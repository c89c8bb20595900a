import type { FourLetterCommand } from '../admin/index.ts'

/** What the first bytes of a connection turned out to be. */
export type DetectedProtocol =
  | { readonly kind: 'word'; readonly word: FourLetterCommand; readonly argument: Uint8Array }
  /** Not a word: the bytes begin the frames of a client. */
  | { readonly kind: 'frames'; readonly bytes: Uint8Array }

/** Collects the first bytes of a connection until they are known to be a four-letter word or the length of a frame. */
export class ProtocolDetector {
  readonly #wordIn: (bytes: Uint8Array) => FourLetterCommand | undefined
  #bytes: Uint8Array = new Uint8Array(0)

  constructor(wordIn: (bytes: Uint8Array) => FourLetterCommand | undefined) {
    this.#wordIn = wordIn
  }

  /** Takes the next bytes. Gives undefined while more are needed. */
  push(chunk: Uint8Array): DetectedProtocol | undefined {
    const bytes = this.#bytes.length === 0 ? chunk : joined(this.#bytes, chunk)
    const word = bytes.length < 4 ? undefined : this.#wordIn(bytes)
    if (bytes.length >= 4 && word === undefined) return { kind: 'frames', bytes }
    if (word !== undefined && bytes.length >= 4 + word.argumentBytes) {
      return { kind: 'word', word, argument: bytes.subarray(4, 4 + word.argumentBytes) }
    }
    this.#bytes = bytes.slice()
    return undefined
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length)
  all.set(a)
  all.set(b, a.length)
  return all
}
