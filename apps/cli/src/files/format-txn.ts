import { errorName, OpCode } from '@zabra/protocol'
import type { LoggedTxn, SubTxn, Txn } from '@zabra/server/files'
import { formatAcl, fromStoredAcl } from '../text/acl.ts'
import { dataFields, preview, safeLine } from '../text/bytes.ts'
import { hex } from '../text/hex.ts'

const opNames: ReadonlyMap<number, string> = new Map(
  Object.entries(OpCode).map(([name, code]) => [code, name]),
)

/** Whether a transaction changes the node at `path` or a descendant. */
export function changesPath(txn: Txn, path: string): boolean {
  const isBelow = (at: string): boolean => path === '/' || at === path || at.startsWith(`${path}/`)
  if (txn.type === OpCode.multi) return Array.from(txn.txns).some((part) => changesPath(part, path))
  if (txn.type === OpCode.closeSession) return txn.paths2Delete.some(isBelow)
  return 'path' in txn && isBelow(txn.path)
}

/** Formats a transaction on one line: time, session, zxid, operation, and with `withData` the beginning of the data. */
export function txnLine({ header, txn }: LoggedTxn, withData: boolean): string {
  const time = new Date(header.time).toISOString()
  const origin = `session ${hex(header.sessionId)} cxid ${hex(header.cxid)}`
  return `${time} ${origin} zxid ${hex(header.zxid)} ${describe(txn, withData)}`
}

function describe(txn: Txn, withData: boolean): string {
  const name = opNames.get(txn.type) ?? String(txn.type)
  if (txn.type === OpCode.createSession) return `${name} timeout ${txn.timeOut} ms`
  if (txn.type === OpCode.closeSession)
    return [name, ...txn.paths2Delete.map((path) => `deletes ${safeLine(path)}`)].join(' ')
  if (txn.type === OpCode.multi)
    return `${name} [${Array.from(txn.txns, (part) => describePart(part, withData)).join('; ')}]`
  return describePart(txn, withData)
}

function describePart(txn: SubTxn, withData: boolean): string {
  // create and create2 make the same node and print alike.
  const name = opNames.get(txn.type === OpCode.create2 ? OpCode.create : txn.type) ?? String(txn.type)
  if (txn.type === OpCode.error) return `${name} ${errorName(txn.err)}`
  const words = [name, safeLine(txn.path)]
  if ('data' in txn) words.push(withData ? `data ${preview(txn.data)}` : `${txn.data?.length ?? 0} bytes`)
  if ('ephemeral' in txn && txn.ephemeral) words.push('ephemeral')
  if ('ttl' in txn) words.push(`ttl ${txn.ttl} ms`)
  if ('version' in txn) words.push(`version ${txn.version}`)
  if ('acl' in txn) words.push(`acl ${safeLine(formatAcl(fromStoredAcl(txn.acl)))}`)
  return words.join(' ')
}

/** Returns a transaction for JSON output. */
export function txnJson({ header, txn }: LoggedTxn, withData: boolean): Record<string, unknown> {
  return {
    time: new Date(header.time).toISOString(),
    session: hex(header.sessionId),
    cxid: header.cxid,
    zxid: hex(header.zxid),
    ...txnBodyJson(txn, withData),
  }
}

function txnBodyJson(txn: Txn, withData: boolean): Record<string, unknown> {
  const type = opNames.get(txn.type) ?? txn.type
  if (txn.type === OpCode.multi)
    return { type, txns: Array.from(txn.txns, (part) => txnBodyJson(part, withData)) }
  if (txn.type === OpCode.error) return { type, error: errorName(txn.err) }
  if (txn.type === OpCode.createSession) return { type, timeout: txn.timeOut }
  if (txn.type === OpCode.closeSession) return { type, deletes: txn.paths2Delete }
  return {
    type,
    path: txn.path,
    ...('data' in txn ? { bytes: txn.data?.length ?? 0, ...(withData ? dataFields(txn.data) : {}) } : {}),
    ...('ephemeral' in txn ? { ephemeral: txn.ephemeral } : {}),
    ...('ttl' in txn ? { ttl: txn.ttl } : {}),
    ...('version' in txn ? { version: txn.version } : {}),
    ...('acl' in txn ? { acl: formatAcl(fromStoredAcl(txn.acl)) } : {}),
  }
}
