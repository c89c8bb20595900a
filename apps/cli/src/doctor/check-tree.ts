import type { TreeFindings } from '@zabra/server/core'
import { finding, type Finding } from './finding.ts'

/** The longest packet that a client or member takes, where the server does not tell: the default of `jute.maxbuffer`. */
const DEFAULT_PACKET_BYTES = 0xf_ffff
/** The share of a packet from which on its contents are reported. */
const NEAR = 0.5
const MAX_CHILDREN = 20_000

/** Checks what a server has found in its tree. `packetBytes` is its `jute.maxbuffer`. */
export function* checkTree(
  where: string,
  tree: TreeFindings,
  packetBytes = DEFAULT_PACKET_BYTES,
): Generator<Finding> {
  const { largestNode, mostChildren, rootPermissions, ephemerals } = tree
  if (largestNode.bytes > NEAR * packetBytes)
    yield finding(
      'large-node',
      largestNode.path,
      `it has ${largestNode.bytes} bytes of data; a packet has at most ${packetBytes}`,
      'Keep large data elsewhere, and their address here.',
    )
  if (mostChildren.children > MAX_CHILDREN)
    yield finding(
      'many-children',
      mostChildren.path,
      `it has ${mostChildren.children} children, and each listing of them is long`,
      'Spread them over several parents, or remove those that are not used.',
    )
  yield* listed(
    'sequence-counter',
    tree.sequences,
    ({ path, counter }) => `${path} (${counter})`,
    'sequential children of these nodes have used 80 % of their numbers, which end at 2147483647',
    'Let clients use a new parent: beyond the last number, names no longer sort in the order of their creation.',
    where,
  )
  yield* listed(
    'quota-near',
    tree.quotas,
    ({ path, what, limit, use }) => `${path} (${use} of ${limit} ${what})`,
    'quotas are used to 80 % or more',
    'Remove nodes there, or raise the limit with zabra quota set.',
    where,
  )
  yield* listed(
    'open-secret',
    tree.openSecrets,
    ({ path, anyone }) => `${path} (anyone ${anyone} it)`,
    'nodes with the names of secrets are open to anyone',
    'Give them an access list with zabra set-acl, and change the secrets: others may have read them.',
    where,
  )
  if (rootPermissions.includes('c') || rootPermissions.includes('a'))
    yield finding(
      'open-root',
      where,
      `anyone has the permissions ${rootPermissions} for /`,
      'Where clients are not all trusted: zabra set-acl / world:anyone:r with an entry of an administrator beside it.',
    )
  for (const { session, nodes, bytes } of ephemerals)
    if (bytes > NEAR * packetBytes)
      yield finding(
        'many-ephemerals',
        `session ${session}`,
        `it has ${nodes} ephemeral nodes: the transaction that ends it has ${bytes} bytes, and a packet at most ${packetBytes}`,
        'Let its client use several sessions, or fewer nodes: Apache ZooKeeper members cannot read a longer one.',
      )
}

function* listed<T>(
  id: 'sequence-counter' | 'quota-near' | 'open-secret',
  { count, first }: { readonly count: number; readonly first: readonly T[] },
  show: (one: T) => string,
  what: string,
  remedy: string,
  where: string,
): Generator<Finding> {
  if (count > 0)
    yield finding(
      id,
      where,
      `${what}: ${first.map(show).join(', ')}${count > first.length ? `, and ${count - first.length} more` : ''}`,
      remedy,
    )
}
