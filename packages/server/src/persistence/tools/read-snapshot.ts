import { formatZxid, ProtocolError, type ACL } from '@zabra/protocol'
import type { Compression, Disk } from '@zabra/runtime'
import { sameDigest, Tree } from '../../core/tree/index.ts'
import type { Digest, SessionId, StoredStat, Zxid } from '../../core/types.ts'
import { DamageError, hasNonAsciiPaths, loadSnapshot, snapshotsIn } from '../index.ts'

/** One node of a snapshot. */
export interface SnapshotNode {
  readonly path: string
  readonly data: Uint8Array | null
  readonly acl: readonly ACL[]
  readonly stat: StoredStat
  readonly children: number
}

/** The contents of a sound snapshot. */
export interface SnapshotContents {
  readonly file: string
  readonly size: number
  /** The last transaction applied when writing began. */
  readonly zxid: Zxid
  /** The last transaction whose effects it may include; undefined if it is not recorded. */
  readonly lastZxid: Zxid | undefined
  readonly nodeCount: number
  /** Timeouts in milliseconds. */
  readonly sessions: Iterable<readonly [SessionId, number]> & { readonly size: number }
  /** The recorded digest in hexadecimal, and whether the contents have it; undefined where that cannot be determined. */
  readonly digest: { readonly value: string; readonly matches: boolean | undefined } | undefined
  /** Parents before their children. */
  readonly nodes: () => Generator<SnapshotNode>
}

/**
 * Reads a snapshot, compressed or not, and checks its seals. Rejects with a `DamageError` at the first bad byte when it is
 * corrupt.
 */
export async function readSnapshot(
  disk: Disk,
  path: string,
  compression: Compression,
): Promise<SnapshotContents> {
  const slash = path.lastIndexOf('/')
  const folder = slash < 0 ? '.' : path.slice(0, slash)
  const name = path.slice(slash + 1)
  const zxid = snapshotsIn([name])[0]?.zxid ?? 0
  const tree = new Tree({ digest: true, extendedTypes: true })
  const size = await disk.size(path)
  const loaded = await withDamageErrors(path, () =>
    loadSnapshot(disk, folder, { name, zxid }, tree, compression),
  )
  const { digest } = loaded
  return {
    file: path,
    size,
    zxid,
    lastZxid: loaded.lastZxid,
    nodeCount: tree.nodeCount,
    sessions: loaded.sessions,
    digest: digest && {
      value: `${formatZxid(digest.value.hi)}${formatZxid(digest.value.lo).padStart(8, '0')}`,
      matches: digest.zxid === zxid ? matches(tree, digest.value) : undefined,
    },
    nodes: () => nodesOf(tree),
  }
}

/** Returns whether a tree that did not change while it was written has the recorded digest. */
function matches(tree: Tree, digest: Digest): boolean | undefined {
  // Apache ZooKeeper records no digest for a tree without any transaction.
  if (tree.lastZxid === 0 || tree.digest === undefined) return undefined
  if (sameDigest(tree.digest, digest)) return true
  return hasNonAsciiPaths(tree) ? undefined : false
}

/** Yields the nodes of a tree, parents before their children. */
export function* nodesOf(tree: Tree): Generator<SnapshotNode> {
  const cursor = tree.scan()
  try {
    const met: SnapshotNode[] = []
    do {
      met.length = 0
      cursor.next(1000, (node) =>
        met.push({
          path: tree.pathOf(node),
          data: tree.dataOf(node),
          acl: tree.aclOf(node),
          stat: tree.statOf(node),
          children: tree.childCount(node),
        }),
      )
      yield* met
    } while (!cursor.isFinished)
  } finally {
    cursor.close()
  }
}

/** Runs `read` and turns every error about the bytes of the file into a `DamageError`. */
async function withDamageErrors<T>(path: string, read: () => Promise<T>): Promise<T> {
  const action = 'Use an older snapshot or a copy of this one.'
  try {
    return await read()
  } catch (cause) {
    if (cause instanceof DamageError) {
      const what = cause.message.replace(/,? in .* at byte \d+\. [\s\S]*$/, '')
      throw new DamageError(what, path, cause.offset, action, { cause })
    }
    if (!(cause instanceof ProtocolError) && !(cause instanceof RangeError)) throw cause
    const offset = cause instanceof ProtocolError ? cause.offset : 0
    throw new DamageError(cause.message, path, offset, action, { cause })
  }
}
