import { bytes, readStat } from './bytes.ts'
import type { Client } from './client.ts'
import { op } from './opcodes.ts'

/** Nodes that are read at a time: a million requests in flight need gigabytes. */
const NODES = 512

/**
 * Reads the whole tree: path to data, ACL and every field of the stat. The client should be the super user, so that no ACL hides
 * a part.
 */
export async function dumpTree(client: Client, from = '/'): Promise<Record<string, string>> {
  const dump: Record<string, string> = {}
  const waiting = [from]
  const visit = async (path: string): Promise<void> => {
    const [{ data, stat }, reply, children] = await Promise.all([
      client.get(path),
      client.ok(op.getACL, bytes().str(path).done(), `ACL of ${path}`),
      client.children(path),
    ])
    const acl = reply.body.acl() ?? []
    if (JSON.stringify(readStat(reply.body), bigText) !== JSON.stringify(stat, bigText)) {
      throw new Error(`Two reads of ${path} show different stats`)
    }
    const text = data === null ? 'null' : data.length > 64 ? `${data.length} bytes` : data.toString('hex')
    const entries = acl.map(({ perms, scheme, id }) => `${perms}:${scheme}:${id}`).join(',')
    dump[path] = `${text} [${entries}] ${JSON.stringify(stat, bigText)}`
    for (const child of children) waiting.push(path === '/' ? `/${child}` : `${path}/${child}`)
  }
  while (waiting.length > 0) await Promise.all(waiting.splice(-NODES).map(visit))
  return dump
}

const bigText = (_key: string, value: unknown): unknown => (typeof value === 'bigint' ? String(value) : value)
