import { fourLetterWord } from '@zabra/client'
import type { EnsembleConfiguration } from '@zabra/server/files'
import { connect } from 'node:net'
import { isNotServing } from './four-letter-word.ts'

/** What a member of an ensemble has answered. */
export interface MemberAnswer {
  readonly id: number
  /**
   * `serves`: it follows a leader or leads, so a quorum is there. `waits`: it runs and has no leader. `runs`: its ports are open, and it
   * does not say whether it serves. `silent`: no port has answered.
   */
  readonly state: 'serves' | 'waits' | 'runs' | 'silent'
  /** The answer, or why there is none. */
  readonly detail: string
}

export interface AskOptions {
  /** The client port of members whose client address the configuration lacks. */
  readonly clientPort: number
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

/** Asks members of an ensemble, all at once, whether they run and serve. Resolves within `timeoutMs`. */
export function askMembers(
  { members }: EnsembleConfiguration,
  ids: readonly number[],
  options: AskOptions,
): Promise<MemberAnswer[]> {
  return Promise.all(
    ids.map(async (id): Promise<MemberAnswer> => {
      const { addresses, client } = members.get(id)!
      const hosts = addresses.map(({ host }) => host)
      const clientHosts = client === undefined || isWildcard(client.host) ? hosts : [client.host]
      const [modes, quorumPorts, electionPorts] = await Promise.all([
        Promise.all(clientHosts.map((host) => modeOf(host, client?.port ?? options.clientPort, options))),
        Promise.all(addresses.map(({ host, quorumPort }) => isOpen(host, quorumPort, options))),
        Promise.all(addresses.map(({ host, electionPort }) => isOpen(host, electionPort, options))),
      ])
      const mode = modes.find((text) => text !== undefined)
      if (mode !== undefined && SERVING.has(mode)) return { id, state: 'serves', detail: `mode ${mode}` }
      // A member opens the port once a quorum has elected it.
      if (quorumPorts.includes(true))
        return { id, state: 'serves', detail: 'the quorum port of a leader is open' }
      if (mode !== undefined) return { id, state: mode === '' ? 'runs' : 'waits', detail: mode || NO_MODE }
      if (electionPorts.includes(true)) return { id, state: 'runs', detail: 'the election port is open' }
      return { id, state: 'silent', detail: 'no port answers' }
    }),
  )
}

/** The modes of members that have a leader, or lead. */
const SERVING = new Set(['leader', 'follower', 'observer'])
const NO_MODE = 'the client port answers, and does not say the mode'

const isWildcard = (host: string): boolean => /^(?:0\.0\.0\.0|[0:]+)$/.test(host)

/** Returns the mode in the answer to `srvr`; an empty text for an answer without one, undefined without an answer. */
async function modeOf(
  host: string,
  port: number,
  { timeoutMs, signal }: AskOptions,
): Promise<string | undefined> {
  const answer = await fourLetterWord({ scheme: 'tcp', host, port }, 'srvr', { timeoutMs, signal }).catch(
    () => {
      signal.throwIfAborted()
    },
  )
  if (answer === undefined || answer === '') return undefined
  return isNotServing(answer) ? 'not serving' : (/^Mode: ([\w-]{1,20})$/m.exec(answer)?.[1] ?? '')
}

/** Resolves to whether a TCP connection opens. */
function isOpen(host: string, port: number, { timeoutMs, signal }: AskOptions): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    const close = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      socket.destroy()
    }
    const end = (opened: boolean): void => (close(), resolve(opened))
    const abort = (): void => (close(), reject(signal.reason as Error))
    // The look-up of a name counts, which the timeout of a socket would not.
    const timer = setTimeout(() => end(false), timeoutMs)
    signal.addEventListener('abort', abort)
    socket.once('connect', () => end(true))
    socket.on('error', () => end(false))
  })
}
