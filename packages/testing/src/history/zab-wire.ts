/** Placeholder. */
export interface WireRecord {
  readonly committed: ReadonlySet<number>
  readonly wrong: readonly string[]
}
