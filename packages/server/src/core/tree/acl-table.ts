import { OPEN_ACL_UNSAFE, type ACL } from '@zabra/protocol'
import { NumberMap } from '../number-map.ts'
import { PathMap } from './path-map.ts'

/** Id of the ACL "anyone may do everything" for nodes that the server creates itself. It is in no table. */
export const OPEN_ACL_ID = -1

interface Entry {
  readonly list: readonly ACL[]
  /** Text that only equal lists have, and its hash: it may have a megabyte, so that neither is made again to remove the list. */
  readonly key: string
  readonly hash: number
  uses: number
  /** Whether it has no uses, and is kept for a view. */
  isKept: boolean
}

/** The lists of a table at one time. */
export interface AclView {
  readonly count: number
  /** Yields `count` lists with their ids. */
  readonly lists: Iterable<readonly [id: number, list: readonly ACL[]]>
  /** Ends the view. */
  close(): void
}

/** Memory of an entry beside its texts, in bytes. */
const ENTRY_BYTES = 120

/** Lists that were kept for a view, and are removed at once. */
const REMOVED_AT_ONCE = 2

/**
 * Holds access control lists by id, with reference counts, so that equal lists are stored once. A snapshot contains the table
 * (`ReferenceCountedACLCache`).
 */
export class AclTable {
  readonly #entries = new NumberMap<Entry>()
  readonly #ids: PathMap<number>
  /** The most entries that a list has had. */
  longest = 0
  /** Memory of all lists in bytes, approximately. */
  bytes = 0
  #last = 0
  /** Views that are open. */
  readonly #views = new Set<AclView>()
  /** Ids of lists that were kept for views; some may have uses again. */
  readonly #unused: number[] = []
  #kept = 0
  /** Id of the open list, which nearly every node has; undefined when it was not looked up yet, or has no uses. */
  #open: number | undefined

  /** `hashKey` is the secret key of `PathMap`. */
  constructor(hashKey?: number) {
    this.#ids = new PathMap(hashKey)
  }

  /** Adds a use of a list and returns its id. */
  retain(list: readonly ACL[]): number {
    if (list !== OPEN_ACL_UNSAFE) return this.#use(list)
    if (this.#open === undefined) return (this.#open = this.#use(list))
    this.#entries.get(this.#open)!.uses++
    return this.#open
  }

  #use(list: readonly ACL[]): number {
    this.#removeUnused()
    const key = keyOf(list)
    const hash = this.#ids.hash(key)
    let id = this.#ids.get(key, hash)
    if (id === undefined) {
      id = ++this.#last
      const copy = list.map(({ perms, id: { scheme, id: name } }) => ({ perms, id: { scheme, id: name } }))
      this.#ids.set(key, hash, id)
      this.#entries.set(id, { list: copy, key, hash, uses: 1, isKept: false })
      this.#added(key, list)
    } else this.#addUses(this.#entries.get(id)!, 1)
    return id
  }

  #added(key: string, list: readonly ACL[]): void {
    this.longest = Math.max(this.longest, list.length)
    this.bytes += bytesOf(key, list)
  }

  /** Returns the id of a list; undefined when the table does not have it. */
  idOf(list: readonly ACL[]): number | undefined {
    const key = keyOf(list)
    return this.#ids.get(key, this.#ids.hash(key))
  }

  /** Adds uses of an id. Returns false when no list has it. */
  retainId(id: number, times = 1): boolean {
    if (id === OPEN_ACL_ID) return true
    const entry = this.#entries.get(id)
    if (entry === undefined) return false
    this.#addUses(entry, times)
    return true
  }

  #addUses(entry: Entry, times: number): void {
    entry.uses += times
    if (!entry.isKept || entry.uses === 0) return
    entry.isKept = false
    this.#kept--
  }

  /** Removes a use. A list without uses is removed. */
  release(id: number): void {
    const entry = this.#entries.get(id)
    if (entry === undefined || entry.uses === 0) return
    entry.uses--
    if (entry.uses === 0) this.#endUse(id, entry)
    this.#removeUnused()
  }

  #endUse(id: number, entry: Entry): void {
    if (this.#views.size === 0) return this.#remove(id, entry)
    if (id === this.#open) this.#open = undefined
    entry.isKept = true
    this.#kept++
    this.#unused.push(id)
  }

  /** Removes some of the lists that were kept: a view of a large table may have left very many. */
  #removeUnused(): void {
    for (let i = 0; i < REMOVED_AT_ONCE && this.#unused.length > 0 && this.#views.size === 0; i++) {
      const id = this.#unused.pop()!
      const entry = this.#entries.get(id)
      if (entry?.isKept !== true) continue
      this.#kept--
      this.#remove(id, entry)
    }
  }

  #remove(id: number, { list, key, hash }: Entry): void {
    this.#entries.delete(id)
    this.bytes -= bytesOf(key, list)
    if (id === this.#open) this.#open = undefined
    this.#ids.delete(key, hash)
  }

  /** Removes a use while a snapshot is loaded: the list stays for nodes that are still to be loaded. */
  releaseDuringLoad(id: number): void {
    const entry = this.#entries.get(id)
    if (entry !== undefined && entry.uses > 0) entry.uses--
  }

  /** Returns the list of an id. Throws a `RangeError` when a snapshot has an id that its table lacks. */
  get(id: number): readonly ACL[] {
    if (id === OPEN_ACL_ID || id === this.#open) return OPEN_ACL_UNSAFE
    const entry = this.#entries.get(id)
    if (entry === undefined)
      throw new RangeError(`Expected the number of a known access control list, got ${id}`)
    return entry.list
  }

  /** Loads an entry of a snapshot's table; its uses are counted as nodes are loaded. */
  load(id: number, list: readonly ACL[]): void {
    const key = keyOf(list)
    const hash = this.#ids.hash(key)
    const before = this.#entries.get(id)
    if (before !== undefined) {
      this.bytes -= bytesOf(before.key, before.list)
      // Otherwise nodes that are created with the former list would get this one.
      this.#ids.delete(before.key, before.hash)
    }
    this.#entries.set(id, { list, key, hash, uses: before?.uses ?? 0, isKept: false })
    this.#ids.set(key, hash, id)
    this.#added(key, list)
    this.#last = Math.max(this.#last, id)
    this.#open = undefined
  }

  /** Removes the entries of a snapshot that no node uses. */
  purgeUnused(): void {
    for (const [id, entry] of this.#entries) if (entry.uses === 0) this.#remove(id, entry)
  }

  /** The number of lists, without those that are kept for a view alone. */
  get size(): number {
    return this.#entries.size - this.#kept
  }

  /** Returns the lists of now, to be iterated in steps while others are added and removed. No list is removed until it is closed. */
  view(): AclView {
    const entries = this.#entries
    const last = this.#last
    const view = {
      count: entries.size,
      // Lists that are added have higher ids.
      lists: (function* () {
        for (const [id, { list }] of entries) if (id <= last) yield [id, list] as const
      })(),
      close: () => void this.#views.delete(view),
    }
    this.#views.add(view)
    return view
  }

  entries(): [number, readonly ACL[]][] {
    return Array.from(this.#entries, ([id, { list }]) => [id, list])
  }
}

/** The key has the texts of a list once more. */
const bytesOf = (key: string, list: readonly ACL[]): number => 2 * key.length + ENTRY_BYTES * list.length

function keyOf(list: readonly ACL[]): string {
  let key = ''
  for (const { perms, id } of list) key += `${perms}|${part(id.scheme)}|${part(id.id)}|`
  return key
}

const part = (text: string | null): string => (text === null ? '-' : `${text.length}:${text}`)
