import { childPath, ErrorCode } from '@zabra/protocol'
import { hasCode } from '../exit-codes.ts'
import { formatLimits, limitsPath, parseLimits, statsPath, unlimited, type Limits } from '../text/quota.ts'
import type { Client } from '@zabra/client'

/** The limits of a subtree and its usage. */
export interface Quota {
  readonly path: string
  readonly limits: Limits
  readonly used: { readonly count: number; readonly bytes: number }
}

const decode = (data: Uint8Array): string => new TextDecoder().decode(data)

/** Reads the quota of a subtree; resolves to undefined when it has none. */
export async function readQuota(zk: Client, path: string): Promise<Quota | undefined> {
  try {
    const [limits, used] = await Promise.all([zk.getData(limitsPath(path)), zk.getData(statsPath(path))])
    return { path, limits: parseLimits(decode(limits.data)), used: parseLimits(decode(used.data)) }
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE)) return undefined
    throw error
  }
}

/** Finds an ancestor or descendant with a quota, since quotas do not nest; resolves to undefined when there is none. */
export async function conflictingQuota(
  zk: Client,
  path: string,
): Promise<{ path: string; where: 'above' | 'below' } | undefined> {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const above = path.slice(0, end)
    if (await zk.exists(limitsPath(above))) return { path: above, where: 'above' }
  }
  const below = await quotaBelow(zk, path)
  return below === undefined ? undefined : { path: below, where: 'below' }
}

async function quotaBelow(zk: Client, path: string): Promise<string | undefined> {
  const node = limitsPath(path).replace(/\/zookeeper_limits$/, '')
  for (const name of await namesBelow(zk, node)) {
    const child = childPath(path, name)
    if (await zk.exists(limitsPath(child))) return child
    const deeper = await quotaBelow(zk, child)
    if (deeper !== undefined) return deeper
  }
  return undefined
}

async function namesBelow(zk: Client, node: string): Promise<string[]> {
  try {
    const { children } = await zk.getChildren(node)
    return children.filter((name) => name !== 'zookeeper_limits' && name !== 'zookeeper_stats')
  } catch (error) {
    if (hasCode(error, ErrorCode.NONODE)) return []
    throw error
  }
}

/** Sets the limits in `change` and keeps the others. Creates the quota when there is none. */
export async function changeQuota(zk: Client, path: string, change: Partial<Limits>): Promise<Limits> {
  const before = await readQuota(zk, path)
  const limits: Limits = {
    ...(before?.limits ?? unlimited),
    ...change,
  }
  if (before !== undefined) {
    await zk.setData(limitsPath(path), formatLimits(limits))
    return limits
  }
  const folder = limitsPath(path).replace(/\/zookeeper_limits$/, '')
  for (let at = folder.indexOf('/', '/zookeeper/quota'.length); at > 0; at = folder.indexOf('/', at + 1))
    await createIfMissing(zk, folder.slice(0, at))
  await createIfMissing(zk, folder)
  const count = (await zk.getAllChildrenNumber(path)) + 1
  await zk.create(limitsPath(path), { data: formatLimits(limits) })
  // The server recounts once both nodes exist; until then this count, without bytes, is the best known.
  await zk.create(statsPath(path), { data: `count=${count},bytes=0` })
  return limits
}

/** Deletes the quota of a subtree and its then empty parent nodes. Resolves to false when there is none. */
export async function removeQuota(zk: Client, path: string): Promise<boolean> {
  if ((await readQuota(zk, path)) === undefined) return false
  await zk.multi([
    { op: 'delete', path: limitsPath(path) },
    { op: 'delete', path: statsPath(path) },
  ])
  let node = limitsPath(path).replace(/\/zookeeper_limits$/, '')
  while (node !== '/zookeeper/quota') {
    try {
      await zk.delete(node)
    } catch (error) {
      if (hasCode(error, ErrorCode.NOTEMPTY) || hasCode(error, ErrorCode.NONODE)) return true
      throw error
    }
    node = node.slice(0, node.lastIndexOf('/'))
  }
  return true
}

async function createIfMissing(zk: Client, path: string): Promise<void> {
  try {
    await zk.create(path, { data: null })
  } catch (error) {
    if (!hasCode(error, ErrorCode.NODEEXISTS)) throw error
  }
}
