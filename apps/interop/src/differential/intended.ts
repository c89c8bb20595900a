/** An intended difference between the replies of Zabra and Apache ZooKeeper. docs/divergence.md has a row for each. */
export interface Difference {
  /** The names of the cases with this difference. */
  readonly case: RegExp
  readonly reason: string
  /** The reply of Zabra; without it any reply that differs is accepted. */
  readonly reply?: readonly string[]
}

export const intended: readonly Difference[] = [
  { case: /^deleteContainer from a client$/, reason: 'only the server itself removes containers' },
  { case: /^sasl without configuration$/, reason: 'a second token gets the same reply as the first' },
  {
    case: /^random walk 10$/,
    reason: 'setWatches reports a node as absent to a session that may not read it',
  },
]
