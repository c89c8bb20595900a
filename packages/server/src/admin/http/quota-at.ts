import { parseQuota, QUOTA_ROOT, type QuotaNumbers, type Tree } from '../../core/tree/index.ts'

/** Returns the limits or the usage of the quota of a path; undefined where there are none, or none that can be parsed. */
export function quotaAt(tree: Tree, subject: string, name: string): QuotaNumbers | undefined {
  const node = tree.find(`${QUOTA_ROOT}${subject}/${name}`)
  try {
    return node === -1 ? undefined : parseQuota(tree.dataOf(node))
  } catch (error) {
    // A client has written something else there: requests below it are refused.
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
