/** Fields of a line of the log, with what it says of the event and of the server. */
export interface LineFields {
  readonly msg: string
  readonly id?: unknown
  readonly member?: number | string
  readonly peer?: number | string
  readonly role?: unknown
  readonly [name: string]: unknown
}

type Words = (fields: LineFields) => string | undefined

const ROLES: readonly unknown[] = ['leading', 'following', 'observing']

/** Returns the address of a client as Java prints it. */
const addressOf = ({ client }: LineFields): string => `/${String(client)}`

/** Returns it without its port. */
const hostOf = (fields: LineFields): string =>
  addressOf(fields).replace(/^\/\[(.*)\](?::\d+)?$|^\/(\d+(?:\.\d+){3}):\d+$/, '/$1$2')

const threadOf = ({ member }: LineFields): string => `SyncThread:${member ?? 0}`

/** How Apache ZooKeeper words a refusal, by the sentence of this server. */
const refusals: readonly (readonly [
  sentence: RegExp,
  words: (fields: LineFields, match: RegExpExecArray) => string,
])[] = [
  [
    /its address has \d+ connections already and maxClientCnxns is (\d+)/,
    (fields, [, max]) => `Too many connections from ${hostOf(fields)} - max is ${max}`,
  ],
  [
    /its bytes are not a request|its first bytes are/,
    (fields) => {
      const [, length] = /got a length of (-?\d+)/.exec(String(fields['reason'])) ?? []
      const advertised = length === undefined ? '' : ` with advertised length of ${length}`
      return `Len error. A message from ${addressOf(fields)}${advertised} is either a malformed message or too large to process`
    },
  ],
  [
    /its client has seen zxid (0x[\da-f]+) and this server is at (0x[\da-f]+)/,
    (fields, [, seen, last]) =>
      `Refusing session(${String(fields['session'])}) request for client ${addressOf(fields)} as it has seen zxid ${seen} our last zxid is ${last} client must try another server`,
  ],
  [
    /^Refused a session: it is unknown or over/,
    (fields) =>
      `Invalid session ${String(fields['session'])} for client ${addressOf(fields)}, probably expired`,
  ],
]

const goodbye: Words = ({ peer }) =>
  peer === undefined ? undefined : `******* GOODBYE [sid:${peer}] ********`

/** The words by events of this server. */
const words: Readonly<Record<string, Words>> = {
  'client.refused': (fields) => {
    for (const [sentence, worded] of refusals) {
      const match = sentence.exec(fields.msg)
      if (match !== null) return worded(fields, match)
    }
    return undefined
  },
  'data.digest-differs': () => 'Digests are not matching. Value is Zxid',
  'election.decided': ({ role, ms }) =>
    role === 'leading' || role === 'following'
      ? `${role.toUpperCase()} - LEADER ELECTION TOOK - ${String(ms)} MS`
      : undefined,
  'election.looking': () => 'PeerState set to LOOKING',
  'election.unreachable': ({ peer }) => `Cannot open channel to ${peer} at election address`,
  'log.slow-sync': (fields) =>
    `fsync-ing the write ahead log in ${threadOf(fields)} took ${String(fields['ms'])}ms which will adversely effect operation latency`,
  'quorum.learner-closed': goodbye,
  'quorum.learner-lost': goodbye,
  'quota.exceeded': ({ path, what, isHard, use, limit }) => {
    const [count, capital] = what === 'bytes' ? ['bytes', 'Byte'] : ['count', 'Count']
    const kind = isHard === true ? 'hard' : 'soft'
    return `Quota exceeded: ${String(path)} [current ${count}=${String(use)}, ${kind}${capital}Limit=${String(limit)}]`
  },
  'server.failed': (fields) => `Severe unrecoverable error, from thread : ${threadOf(fields)}`,
  'server.role': ({ role }) =>
    ROLES.includes(role) ? `Peer state changed: ${String(role)} - broadcast` : undefined,
  'session.expired': ({ session, timeoutMs }) =>
    `Expiring session ${String(session)}, timeout of ${String(timeoutMs)}ms exceeded`,
}

/** Returns how Apache ZooKeeper words the event of a line, which operators and their tools search for; undefined for events that it lacks. */
export function apacheWords(fields: LineFields): string | undefined {
  const { id } = fields
  return typeof id === 'string' && Object.hasOwn(words, id) ? words[id]!(fields) : undefined
}

/** The events that Apache ZooKeeper has words for. */
export const WORDED_EVENTS: readonly string[] = Object.keys(words)
