/** An item of a list. The fields belong to the list. */
export interface Linked<T> {
  previous: T | undefined
  next: T | undefined
}

/** Items in the order in which they were added. They refer to each other, since a `Set` copies all its entries when it grows. */
export class LinkedList<T extends Linked<T>> {
  first: T | undefined
  #last: T | undefined

  /** Adds an item, which is in no list. */
  add(item: T): void {
    item.previous = this.#last
    if (this.#last === undefined) this.first = item
    else this.#last.next = item
    this.#last = item
  }

  /** Removes an item of this list. */
  remove(item: T): void {
    const { previous, next } = item
    if (previous === undefined) this.first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    item.previous = item.next = undefined
  }
}
