import type { Entry, Finding } from './sources.ts'

/** What the member line of a lone server says about its own client port. */
export interface LoneMember {
  readonly id: number
  readonly clientPort?: { readonly host?: string; readonly port: number }
}

const memberKey = /^server\.(\d+)$/
const host = String.raw`(\[[\da-fA-F:.%\w]+\]|[^\[\]:;|]+)`
const address = new RegExp(`^${host}:(\\d+)(?::(\\d+))?(?::(participant|observer))?$`, 'i')
const clientPart = new RegExp(`^(?:${host}:)?(\\d+)$`)
const form = 'host:quorumPort:electionPort[:participant|observer][;[address:]clientPort]'

/** Whether a key declares a member of an ensemble. */
export function isMember(key: string): boolean {
  return key.startsWith('server.')
}

/**
 * Judges the `server.N` lines. One of them means a server on its own, as in ZooKeeper; several mean an ensemble,
 * which this server does not serve yet and must not pretend to.
 */
export function judgeMembers(entries: readonly Entry[], findings: Finding[]): LoneMember | undefined {
  const members = new Map<number, Entry>()
  for (const entry of entries) {
    const id = memberKey.exec(entry.key)?.[1]
    if (id !== undefined && Number(id) <= 255) members.set(Number(id), entry)
    else
      findings.push({
        severity: 'error',
        where: entry.where,
        key: entry.key,
        text: 'expected server.N with N from 0 to 255.',
      })
  }
  const [first, second] = [...members]
  if (first === undefined) return undefined
  if (second !== undefined) {
    findings.push({
      severity: 'error',
      where: second[1].where,
      key: second[1].key,
      text:
        `ensembles are not served yet: ${members.size} members are configured, and this server would be on its own. ` +
        'Run Apache ZooKeeper for an ensemble, or leave one server.N line to run a single server.',
    })
    return undefined
  }
  return readMember(first[0], first[1], findings)
}

function readMember(id: number, entry: Entry, findings: Finding[]): LoneMember | undefined {
  const [addresses = '', client] = entry.value.split(';').map((part) => part.trim())
  const port = client ? clientPart.exec(client) : undefined
  if (
    !addresses.split('|').every((one) => address.test(one)) ||
    (client && (!port || Number(port[2]) > 65_535))
  ) {
    findings.push({
      severity: 'error',
      where: entry.where,
      key: entry.key,
      text: `expected ${form}, got "${entry.value}".`,
    })
    return undefined
  }
  findings.push({
    severity: 'warning',
    where: entry.where,
    key: entry.key,
    text: 'is the only member, so the server runs on its own; its quorum and election ports are not opened.',
  })
  if (!port) return { id }
  const at = port[1]?.replace(/^\[|\]$/g, '')
  return { id, clientPort: { ...(at === undefined ? {} : { host: at }), port: Number(port[2]) } }
}
