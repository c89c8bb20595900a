/** Keeps what was set last: of too many keys, the one that was set longest ago is deleted. */
export class RecentMap<K, V> extends Map<K, V> {
  readonly #most: number

  constructor(most: number) {
    super()
    this.#most = most
  }

  override set(key: K, value: V): this {
    this.delete(key)
    super.set(key, value)
    if (this.size > this.#most) {
      const [first] = this.keys()
      this.delete(first!)
    }
    return this
  }
}
