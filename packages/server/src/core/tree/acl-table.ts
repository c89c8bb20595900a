import { OPEN_ACL_UNSAFE, type ACL } from '@zabra/protocol'

/** The number of "everybody may do everything" for nodes that a server makes itself; it stands in no table. */
export const OPEN_ACL_ID = -1

/**
 * Access control lists under numbers, so that equal lists are kept once. Numbers and counts are those that a snapshot
 * carries (`ReferenceCountedACLCache`).
 */
export class AclTable {
  readonly #lists = new Map<number, readonly ACL[]>()
  readonly #ids = new Map<string, number>()
  readonly #uses = new Map<number, number>()
  #last = 0
  /** The number of the list that nearly every node has; undefined when it is not looked up yet, or has no uses. */
  #open: number | undefined

  /** The number of a list, for one use more. */
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

  /** The number that `use` would give, without a use; undefined when the list is not known. */
  idOf(list: readonly ACL[]): number | undefined {
    return this.#ids.get(keyOf(list))
  }

  /** One use more of a number, or so many; false when no list has it. */
  retainId(id: number, times = 1): boolean {
    if (id === OPEN_ACL_ID) return true
    if (!this.#lists.has(id)) return false
    if (times > 0) this.#uses.set(id, (this.#uses.get(id) ?? 0) + times)
    return true
  }

  /** One use less; a list without uses is forgotten. */
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

  /** One use less while a snapshot is read: the list stays for nodes that are still to come. */
  releaseDuringLoad(id: number): void {
    const uses = this.#uses.get(id)
    if (uses === undefined) return
    if (uses > 1) this.#uses.set(id, uses - 1)
    else {
      this.#uses.delete(id)
      if (id === this.#open) this.#open = undefined
    }
  }

  /** The list under a number. Throws when a snapshot names a number that its table lacks. */
  get(id: number): readonly ACL[] {
    if (id === OPEN_ACL_ID || id === this.#open) return OPEN_ACL_UNSAFE
    const list = this.#lists.get(id)
    if (list === undefined)
      throw new RangeError(`Expected the number of a known access control list, got ${id}`)
    return list
  }

  /** Takes a row of a snapshot's table; uses are counted as its nodes arrive. */
  load(id: number, list: readonly ACL[]): void {
    this.#lists.set(id, list)
    this.#ids.set(keyOf(list), id)
    this.#last = Math.max(this.#last, id)
    this.#open = undefined
  }

  /** Forgets rows of a snapshot that no node used. */
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
