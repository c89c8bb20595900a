import { OPEN_ACL_UNSAFE, type ACL } from '@zabra/protocol'
import { NumberMap } from '../number-map.ts'
import { TextMap } from '../text-map.ts'

/** Id of the ACL "anyone may do everything" for nodes that the server creates itself. It is in no table. */
export const OPEN_ACL_ID = -1

/**
 * Holds access control lists by id, with reference counts, so that equal lists are stored once. A snapshot contains the table
 * (`ReferenceCountedACLCache`).
 */
export class AclTable {
  readonly #lists = new NumberMap<readonly ACL[]>()
  readonly #ids: TextMap<number>
  readonly #uses = new NumberMap<number>()
  #last = 0
  /** Id of the open list, which nearly every node has; undefined when it was not looked up yet, or has no uses. */
  #open: number | undefined

  /** `hashKey` is the secret key of `TextMap`. */
  constructor(hashKey?: number) {
    this.#ids = new TextMap(hashKey)
  }

  /** Adds a use of a list and returns its id. */
  retain(list: readonly ACL[]): number {
    if (list !== OPEN_ACL_UNSAFE) return this.#use(list)
    if (this.#open === undefined) return (this.#open = this.#use(list))
    this.#uses.set(this.#open, this.#uses.get(this.#open)! + 1)
    return this.#open
  }

  #use(list: readonly ACL[]): number {
    const key = keyOf(list)
    let id = this.#ids.get(key)
    if (id === undefined) {
      id = ++this.#last
      this.#ids.set(key, id)
      this.#lists.set(
        id,
        list.map(({ perms, id: { scheme, id: name } }) => ({ perms, id: { scheme, id: name } })),
      )
    }
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1)
    return id
  }

  /** Returns the id of a list; undefined when the table does not have it. */
  idOf(list: readonly ACL[]): number | undefined {
    return this.#ids.get(keyOf(list))
  }

  /** Adds uses of an id. Returns false when no list has it. */
  retainId(id: number, times = 1): boolean {
    if (id === OPEN_ACL_ID) return true
    if (!this.#lists.has(id)) return false
    if (times > 0) this.#uses.set(id, (this.#uses.get(id) ?? 0) + times)
    return true
  }

  /** Removes a use. A list without uses is removed. */
  release(id: number): void {
    const uses = this.#uses.get(id)
    if (uses === undefined) return
    if (uses > 1) {
      this.#uses.set(id, uses - 1)
      return
    }
    const list = this.#lists.get(id)
    this.#uses.delete(id)
    this.#lists.delete(id)
    if (id === this.#open) this.#open = undefined
    if (list) this.#ids.delete(keyOf(list))
  }

  /** Removes a use while a snapshot is loaded: the list stays for nodes that are still to be loaded. */
  releaseDuringLoad(id: number): void {
    const uses = this.#uses.get(id)
    if (uses === undefined) return
    if (uses > 1) this.#uses.set(id, uses - 1)
    else {
      this.#uses.delete(id)
      if (id === this.#open) this.#open = undefined
    }
  }

  /** Returns the list of an id. Throws a `RangeError` when a snapshot has an id that its table lacks. */
  get(id: number): readonly ACL[] {
    if (id === OPEN_ACL_ID || id === this.#open) return OPEN_ACL_UNSAFE
    const list = this.#lists.get(id)
    if (list === undefined)
      throw new RangeError(`Expected the number of a known access control list, got ${id}`)
    return list
  }

  /** Loads an entry of a snapshot's table; its uses are counted as nodes are loaded. */
  load(id: number, list: readonly ACL[]): void {
    this.#lists.set(id, list)
    this.#ids.set(keyOf(list), id)
    this.#last = Math.max(this.#last, id)
    this.#open = undefined
  }

  /** Removes the entries of a snapshot that no node uses. */
  purgeUnused(): void {
    for (const [id, list] of this.#lists) {
      if (this.#uses.has(id)) continue
      this.#lists.delete(id)
      this.#ids.delete(keyOf(list))
    }
  }

  get size(): number {
    return this.#lists.size
  }

  entries(): [number, readonly ACL[]][] {
    return [...this.#lists]
  }
}

function keyOf(list: readonly ACL[]): string {
  let key = ''
  for (const { perms, id } of list) key += `${perms}|${part(id.scheme)}|${part(id.id)}|`
  return key
}

const part = (text: string | null): string => (text === null ? '-' : `${text.length}:${text}`)
