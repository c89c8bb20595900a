import type { Hash } from '@zabra/runtime'

/**
 * The hash chain of the audit log. Each line of JSON begins with the SHA-256 of the line before, without its newline:
 *
 *     {"prev":"<64 hexadecimal digits>","time":…}
 *
 * What a crash or a failed write has left of a line is closed by a line with a second hash, that of the last whole line:
 *
 *     {"prev":"<hash of what is left>","torn":"<hash of the last whole line>",…}
 */

const HASH = '([0-9a-f]{64})'
const LINKED = new RegExp(`^\\{"prev":"${HASH}",`)
const CLOSES_TORN = new RegExp(`^\\{"prev":"${HASH}","torn":"${HASH}",`)
const ID = /"id":(\d+)/
/** Bytes of a line that are kept to read its hashes and its number from. */
const KEPT_BYTES = 320
const NEWLINE = 10
const BRACE = 0x7d
const encoder = new TextEncoder()
const decoder = new TextDecoder()

/** The hash before the first line of a log. */
export const NO_LINE = '0'.repeat(64)

/** Bytes by which a hash makes a line longer. */
export const LINK_BYTES = `"prev":"${NO_LINE}",`.length

/** Returns the beginning of a line of JSON, instead of its brace, with the hash of the line before. */
export const linkTo = (prev: string, torn?: string): string =>
  torn === undefined ? `{"prev":"${prev}",` : `{"prev":"${prev}","torn":"${torn}",`

/** A line of a file; lines are counted from 1. */
export interface AuditPlace {
  readonly file: string
  readonly line: number
}

/**
 * What is wrong with the first line that does not belong where it is. `changed`: its bytes differ from those that were written;
 * `missing`: lines before it are gone; `broken`: it was changed, or lines behind it are gone; `inserted`: it was not written there; `unlinked`: it has no hash of the line before;
 * `restarted`: a new chain begins.
 */
export interface ChainFault extends AuditPlace {
  readonly kind: 'changed' | 'missing' | 'broken' | 'inserted' | 'unlinked' | 'restarted'
}

/** What is known of a chain after its lines were read. */
export interface ChainState {
  readonly lines: number
  /** Lines before the first one with a hash. */
  readonly unlinkedLines: number
  /** The hash before the first line with one; undefined if there is none. */
  readonly first: string | undefined
  /** The hash of the last whole line; undefined without lines. */
  readonly head: string | undefined
  /** The hash of what is left of lines behind the last whole one; undefined if nothing is. */
  readonly torn: string | undefined
  /** Where lines were torn. */
  readonly tornAt: readonly AuditPlace[]
  /** The first line that is not part of the chain. */
  readonly fault: ChainFault | undefined
  /** Where the line with the wanted hash is. */
  readonly wantedAt: AuditPlace | undefined
}

interface Line extends AuditPlace {
  readonly hash: string
  readonly isWhole: boolean
  readonly prev: string | undefined
  readonly torn: string | undefined
  readonly id: number | undefined
}

/** Follows a chain through the bytes of its files, the oldest first, and stops at the first line that is not part of it. */
export class ChainReader {
  readonly #sha256: () => Hash
  readonly #wanted: string | undefined
  #file = ''
  #lineNumber = 0
  #lines = 0
  #unlinkedLines = 0
  #first: string | undefined
  /** The last whole line and the one before it. */
  #last: Line | undefined
  #beforeLast: Line | undefined
  /** The hash over torn lines behind the last whole one, and the first of them. */
  #torn: string | undefined
  #tornPlace: AuditPlace | undefined
  readonly #tornAt: AuditPlace[] = []
  #isTerminated = true
  /** A line whose hash does not fit, until the line behind it tells why. */
  #suspect: Line | undefined
  #fault: ChainFault | undefined
  #wantedAt: AuditPlace | undefined
  /** The line that is being read. */
  #hash: Hash | undefined
  readonly #kept = new Uint8Array(KEPT_BYTES)
  #length = 0
  #lastByte = 0

  /** `wanted` is the hash of a line to be found. */
  constructor(sha256: () => Hash, wanted?: string) {
    this.#sha256 = sha256
    this.#wanted = wanted
  }

  beginFile(name: string): void {
    this.#endUnterminated()
    this.#file = name
    this.#lineNumber = 0
  }

  /** Reads the next bytes of the file. */
  push(chunk: Uint8Array): void {
    let from = 0
    while (from < chunk.length && this.#fault === undefined) {
      const newline = chunk.indexOf(NEWLINE, from)
      this.#add(chunk.subarray(from, newline === -1 ? chunk.length : newline))
      if (newline === -1) return
      this.#endLine(this.#takeLine())
      from = newline + 1
    }
  }

  /** Ends the last file. */
  end(): ChainState {
    this.#endUnterminated()
    if (this.#suspect !== undefined) this.#explain(this.#suspect, undefined)
    // A crash leaves no newline behind.
    if (this.#torn !== undefined && this.#isTerminated) this.#fail('unlinked', this.#tornPlace!)
    return {
      lines: this.#lines,
      unlinkedLines: this.#first === undefined ? this.#lines : this.#unlinkedLines,
      first: this.#first,
      head: this.#last?.hash,
      torn: this.#torn,
      tornAt: this.#tornPlace === undefined ? this.#tornAt : [...this.#tornAt, this.#tornPlace],
      fault: this.#fault,
      wantedAt: this.#wantedAt,
    }
  }

  #add(bytes: Uint8Array): void {
    this.#hash ??= this.#sha256()
    if (bytes.length === 0) return
    this.#hash.update(bytes)
    if (this.#length < KEPT_BYTES) this.#kept.set(bytes.subarray(0, KEPT_BYTES - this.#length), this.#length)
    this.#length += bytes.length
    this.#lastByte = bytes.at(-1)!
  }

  #takeLine(): Line {
    const text = textOf(this.#kept.subarray(0, this.#length))
    const [, prev, torn] = CLOSES_TORN.exec(text) ?? LINKED.exec(text) ?? []
    const id = ID.exec(text)?.[1]
    const line = {
      file: this.#file,
      line: ++this.#lineNumber,
      hash: this.#hash!.digest(),
      isWhole: this.#lastByte === BRACE,
      prev,
      torn,
      id: id === undefined ? undefined : Number(id),
    }
    this.#hash = undefined
    this.#length = this.#lastByte = 0
    return line
  }

  /** Ends a line without a newline, with which a file ends after a crash. */
  #endUnterminated(): void {
    if (this.#hash === undefined || this.#fault !== undefined) return
    const line = this.#takeLine()
    this.#lines++
    if (this.#suspect !== undefined) return this.#explain(this.#suspect, line)
    this.#addTorn(line)
    this.#isTerminated = false
  }

  #endLine(line: Line): void {
    this.#lines++
    this.#isTerminated = true
    if (line.hash === this.#wanted) this.#wantedAt = place(line)
    if (this.#suspect !== undefined) return this.#explain(this.#suspect, line)
    if (line.prev === undefined || !line.isWhole)
      return this.#first === undefined ? this.#keep(line) : this.#addTorn(line)
    if (line.torn !== undefined && this.#closesTorn(line)) return this.#keep(line)
    if (this.#torn !== undefined) return this.#fail('unlinked', this.#tornPlace!)
    if (this.#last === undefined || line.prev === this.#last.hash) return this.#keep(line)
    this.#suspect = line
  }

  /** Whether a line closes what is torn before it, which may turn out to be a whole line that lacked its newline only. */
  #closesTorn({ prev, torn }: Line): boolean {
    if (this.#torn !== undefined) {
      if (prev !== this.#torn || (this.#last !== undefined && torn !== this.#last.hash)) return false
      this.#tornAt.push(this.#tornPlace!)
      this.#torn = this.#tornPlace = undefined
      return true
    }
    if (this.#last === undefined) return true
    if (prev !== this.#last.hash || (this.#beforeLast !== undefined && torn !== this.#beforeLast.hash))
      return false
    this.#tornAt.push(place(this.#last))
    return true
  }

  #keep(line: Line): void {
    if (line.prev !== undefined && this.#first === undefined) {
      this.#unlinkedLines = this.#lines - 1
      this.#first = line.prev
      if (line.prev === this.#wanted) this.#wantedAt = place(line)
    }
    this.#beforeLast = this.#last
    this.#last = line
  }

  #addTorn(line: Line): void {
    if (this.#torn === undefined) {
      this.#torn = line.hash
      this.#tornPlace = place(line)
      return
    }
    // A crash while a torn line was closed leaves another one.
    this.#torn = combine(this.#sha256, this.#torn, line.hash)
  }

  /** Tells from the line behind it, if there is one, why the hash in a line is not that of the line before. */
  #explain(line: Line, next: Line | undefined): void {
    const last = this.#last!
    this.#suspect = undefined
    if (line.prev === NO_LINE) return this.#fail('restarted', line)
    if (line.prev === this.#beforeLast?.hash) return this.#fail('inserted', last)
    if (next?.prev === last.hash) return this.#fail('inserted', line)
    if (next?.prev !== undefined && next.prev !== line.hash) return this.#fail('changed', line)
    const step = line.id === undefined || last.id === undefined ? 0 : line.id - last.id
    if (step > 1) return this.#fail('missing', line)
    // Numbers begin anew when the server starts.
    return this.#fail(step === 1 ? 'changed' : 'broken', last)
  }

  #fail(kind: ChainFault['kind'], at: AuditPlace): void {
    this.#fault ??= { kind, ...place(at) }
  }
}

/** What the next line of a log has to say of the lines before it. */
export interface ChainTail {
  /** The hash of the last whole line. */
  readonly head: string
  /** The hash of what is torn behind it; undefined if nothing is. */
  readonly torn: string | undefined
}

/** Returns what follows from the last bytes of a file, which begin with a line unless `isPart`; undefined if there is nothing in them. */
export function tailOf(bytes: Uint8Array, isPart: boolean, sha256: () => Hash): ChainTail | undefined {
  const lines = splitLines(isPart ? bytes.subarray(bytes.indexOf(NEWLINE) + 1) : bytes)
  if (lines.length === 0) return undefined
  const isCut = bytes.at(-1) !== NEWLINE
  const whole = isCut ? lines.slice(0, -1) : lines
  const linked = whole.findLastIndex((line) => line.at(-1) === BRACE && LINKED.test(textOf(line)))
  const last = linked === -1 ? whole.length - 1 : linked
  const hashOf = (line: Uint8Array): string => {
    const hash = sha256()
    hash.update(line)
    return hash.digest()
  }
  const torn = lines.slice(last + 1).map(hashOf)
  return {
    head: last === -1 ? NO_LINE : hashOf(lines[last]!),
    torn: torn.length === 0 ? undefined : torn.reduce((before, one) => combine(sha256, before, one)),
  }
}

function splitLines(bytes: Uint8Array): Uint8Array[] {
  const lines: Uint8Array[] = []
  for (let from = 0; from < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, from)
    const end = newline === -1 ? bytes.length : newline
    lines.push(bytes.subarray(from, end))
    from = end + 1
  }
  return lines
}

const textOf = (line: Uint8Array): string => decoder.decode(line.subarray(0, KEPT_BYTES))

/** Returns the hash over two torn lines, of which the first may stand for several. */
function combine(sha256: () => Hash, first: string, second: string): string {
  const hash = sha256()
  hash.update(encoder.encode(first + second))
  return hash.digest()
}

const place = ({ file, line }: AuditPlace): AuditPlace => ({ file, line })
