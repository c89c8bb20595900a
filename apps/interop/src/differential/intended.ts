/** One place where Zabra answers otherwise than Apache ZooKeeper on purpose. docs/divergence.md has a row for each. */
export interface Difference {
  /** Which cases. */
  readonly case: RegExp
  readonly reason: string
  /** What Zabra answers; without it any answer that differs will do. */
  readonly answer?: readonly string[]
}

export const intended: readonly Difference[] = [
  { case: /^deleteContainer from a client$/, reason: 'only the server itself removes containers' },
  { case: /^sasl without configuration$/, reason: 'a second token is answered as the first one is' },
]
