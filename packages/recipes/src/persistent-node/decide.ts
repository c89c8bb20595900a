/** What is found in the place of a node that is to be kept. */
export interface FoundNode {
  /** The session that owns it; 0n for none. */
  readonly owner: bigint
  /** It holds what it should. */
  readonly hasData: boolean
}

export interface NodeSessions {
  readonly session: bigint
  /** Sessions that this keeper had before. */
  readonly earlier: ReadonlySet<bigint>
  readonly ephemeral: boolean
}

/**
 * What to do with a znode that exists already. `keep`: it is ours and right. `write`: it is ours and holds something old.
 * `replace`: a session that we had before left it. `conflict`: it is somebody else's.
 */
export function actionFor(
  { owner, hasData: same }: FoundNode,
  { session, earlier, ephemeral }: NodeSessions,
): 'keep' | 'write' | 'replace' | 'conflict' {
  if (ephemeral && owner !== session) return earlier.has(owner) ? 'replace' : 'conflict'
  if (!ephemeral && owner !== 0n) return 'conflict'
  return same ? 'keep' : 'write'
}
