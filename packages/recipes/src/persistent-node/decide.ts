/** The existing znode at the path. */
export interface FoundNode {
  /** Id of the session that owns it; 0n for none. */
  readonly owner: bigint
  /** True when it holds the wanted data. */
  readonly hasData: boolean
}

export interface NodeSessions {
  readonly session: bigint
  /** Sessions that this client had before. */
  readonly earlier: ReadonlySet<bigint>
  readonly ephemeral: boolean
}

/**
 * Returns what to do with an existing znode. `keep`: it is this client's and up to date. `write`: it is this
 * client's with old data. `replace`: an earlier session of this client left it. `conflict`: it belongs to another
 * client.
 */
export function actionFor(
  { owner, hasData: same }: FoundNode,
  { session, earlier, ephemeral }: NodeSessions,
): 'keep' | 'write' | 'replace' | 'conflict' {
  if (ephemeral && owner !== session) return earlier.has(owner) ? 'replace' : 'conflict'
  if (!ephemeral && owner !== 0n) return 'conflict'
  return same ? 'keep' : 'write'
}
