import type { Cryptography, Disk } from '@zabra/runtime'
import { LINK_BYTES, linkTo, NO_LINE, tailOf, type ChainTail } from '../core/audit-chain.ts'

/** Bytes at the end of a file from which its chain is continued: more than the longest line that waits to be written. */
const TAIL_BYTES = 4 * 1024 * 1024
const NEWLINE = 10

const encoder = new TextEncoder()

/** Links the lines of an audit file, which are JSON, by hashes: each begins with the hash of the line before. */
export class AuditChain {
  readonly #cryptography: Cryptography
  /** Returns a line that says that one is torn. */
  readonly #tornLine: () => string
  #tail: ChainTail | undefined
  /** The tail once the last linked lines are written. */
  #next: ChainTail | undefined
  #bytes = new Uint8Array(0)

  constructor(cryptography: Cryptography, tornLine: () => string) {
    this.#cryptography = cryptography
    this.#tornLine = tornLine
  }

  /** The hash of the last line that is written. */
  get head(): string {
    return this.#tail?.head ?? NO_LINE
  }

  /**
   * Continues the chain of a file, of the file that was renamed before it where it is empty or absent, or of the last line that was
   * written, whatever is known. Rejects with a `DiskError` when a file cannot be read.
   */
  async resume(disk: Disk, path: string, renamed: string): Promise<void> {
    const known = this.#tail
    if (known !== undefined && this.#next === undefined) return
    this.#tail =
      (await readTail(disk, path, this.#cryptography)) ??
      known ??
      (await readTail(disk, renamed, this.#cryptography))
    this.#tail ??= { head: NO_LINE, torn: undefined }
    this.#next = undefined
  }

  /**
   * Returns the bytes of lines with their hashes, which are valid until the next call. They follow what `written` has confirmed, behind a
   * newline if the file `isCut`.
   */
  link(lines: Uint8Array, count: number, isCut = false): Uint8Array {
    const { head, torn } = this.#tail!
    const closing = torn === undefined ? '' : `${linkTo(torn, head)}${this.#tornLine().slice(1)}`
    const size = lines.length + count * LINK_BYTES + closing.length * 3 + 2
    if (this.#bytes.length < size) this.#bytes = new Uint8Array(size)
    const into = this.#bytes
    let at = 0
    let prev = head
    if (isCut) into[at++] = NEWLINE
    if (closing !== '') {
      const start = at
      at += encoder.encodeInto(closing, into.subarray(at)).written
      prev = this.#cryptography.sha256Of(into.subarray(start, at))
      into[at++] = NEWLINE
    }
    for (let from = 0; from < lines.length;) {
      const end = lines.indexOf(NEWLINE, from)
      const start = at
      at += encoder.encodeInto(linkTo(prev), into.subarray(at)).written
      into.set(lines.subarray(from + 1, end), at)
      at += end - from - 1
      prev = this.#cryptography.sha256Of(into.subarray(start, at))
      into[at++] = NEWLINE
      from = end + 1
    }
    this.#next = { head: prev, torn: undefined }
    return into.subarray(0, at)
  }

  /** Confirms that the lines of the last call of `link` are in the file. */
  written(): void {
    this.#tail = this.#next
    this.#next = undefined
  }

  /** Says that nothing of the lines of the last call of `link` is in the file. */
  undone(): void {
    this.#next = undefined
  }
}

/** Returns what follows from the end of a file; undefined if it is empty or absent. */
async function readTail(
  disk: Disk,
  path: string,
  cryptography: Cryptography,
): Promise<ChainTail | undefined> {
  if (!(await disk.exists(path))) return undefined
  const reader = await disk.openRead(path)
  try {
    const size = await reader.size()
    const from = Math.max(0, size - TAIL_BYTES)
    const bytes = new Uint8Array(size - from)
    const read = await reader.read(bytes, from)
    return tailOf(bytes.subarray(0, read), from > 0, () => cryptography.sha256())
  } finally {
    await reader.close()
  }
}
