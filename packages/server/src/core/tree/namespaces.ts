/** First path elements that are counted each for itself at the same time. One that is created beyond them is counted with the rest. */
const MAX_COUNTED = 10_000
/** A first path element whose path is longer, in characters, is counted with the rest: it would be a label of metrics. */
export const MAX_NAME = 100

/** The number of the root, which counts nowhere, and that of all first path elements that are not counted each for itself. */
export const ROOT = 0
export const REST = 1

export interface NamespaceSize {
  readonly nodes: number
  /** Of data and paths. */
  readonly bytes: number
}

/** The size of a first path element. */
export interface CountedNamespace extends NamespaceSize {
  /** Its node. */
  readonly top: number
}

/**
 * Counts nodes and bytes below each first path element of a tree. Each node of the tree holds the number of its first path element, so
 * that a change costs two additions. Takes at most half a megabyte.
 */
export class Namespaces {
  /** Numbers that other classes keep for a first path element; 0 for a new one. */
  labels = new Uint8Array(64)
  #nodes = new Float64Array(64)
  #bytes = new Float64Array(64)
  #tops = new Int32Array(64)
  #used = REST + 1
  readonly #free: number[] = []

  /** Begins to count a first path element, and returns its number. `length` is that of its path. */
  open(top: number, length: number): number {
    if (length > MAX_NAME || (this.#free.length === 0 && this.#used === REST + 1 + MAX_COUNTED)) return REST
    const number = this.#free.pop() ?? this.#used++
    if (number === this.#nodes.length) this.#grow()
    this.#tops[number] = top
    return number
  }

  /** Counts a first path element no more: its node is removed. */
  close(number: number): void {
    if (number === REST) return
    this.#nodes[number] = this.#bytes[number] = this.labels[number] = 0
    this.#free.push(number)
  }

  add(number: number, nodes: number, bytes: number): void {
    this.#nodes[number]! += nodes
    this.#bytes[number]! += bytes
  }

  topOf(number: number): number {
    return this.#tops[number]!
  }

  /** Returns up to `count` first path elements with most bytes, the largest first, and what all others have together. */
  largest(count: number): { readonly largest: readonly CountedNamespace[]; readonly rest: NamespaceSize } {
    const largest: CountedNamespace[] = []
    const rest = { nodes: this.#nodes[REST]!, bytes: this.#bytes[REST]! }
    for (let number = REST + 1; number < this.#used; number++) {
      const [nodes, bytes] = [this.#nodes[number]!, this.#bytes[number]!]
      if (nodes === 0) continue
      let smallest: NamespaceSize | undefined = { nodes, bytes }
      if (largest.length < count || bytes > largest.at(-1)!.bytes) {
        const at = largest.findIndex((one) => bytes > one.bytes)
        largest.splice(at === -1 ? largest.length : at, 0, { top: this.#tops[number]!, nodes, bytes })
        smallest = largest.length > count ? largest.pop() : undefined
      }
      rest.nodes += smallest?.nodes ?? 0
      rest.bytes += smallest?.bytes ?? 0
    }
    return { largest, rest }
  }

  #grow(): void {
    const length = this.#nodes.length * 2
    this.labels = copied(this.labels, new Uint8Array(length))
    this.#nodes = copied(this.#nodes, new Float64Array(length))
    this.#bytes = copied(this.#bytes, new Float64Array(length))
    this.#tops = copied(this.#tops, new Int32Array(length))
  }
}

function copied<T extends { set(from: T): void }>(from: T, to: T): T {
  to.set(from)
  return to
}
