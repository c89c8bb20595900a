import type { ServerSettings } from '@zabra/server/settings'

/** A port that is listened on, by the key that sets it. */
export interface ListeningPort {
  readonly key: 'clientPort' | 'secureClientPort' | 'webSocketPort'
  readonly address: { readonly host: string; readonly port: number }
  readonly secure: boolean
}

const isWildcard = (host: string): boolean => host === '' || host === '0.0.0.0' || host === '::'

/** An address as a client types it: a wildcard is reached over loopback. */
export function reachable({ host, port }: { host: string; port: number }): string {
  if (isWildcard(host)) return `127.0.0.1:${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** What to tell of a server that has started. */
export interface ReadyInfo {
  readonly listening: string
  /** What a member of an ensemble does until it serves clients; absent for a server that serves already. */
  readonly member?: string
  readonly dataDir: string
  readonly dataLogDir?: string
  readonly next: string
}

/** What to tell once the server listens: where, whether it serves yet, with which data, and what to type next. */
export function readyInfo(served: readonly ListeningPort[], settings: ServerSettings): ReadyInfo {
  const { ensemble, serverId } = settings
  return {
    listening: served.map(describePort).join('; '),
    ...(ensemble === undefined
      ? {}
      : {
          member: `${serverId} of ${ensemble.members.size}, looking for a leader; it serves once there is one`,
        }),
    dataDir: settings.dataDir,
    ...(settings.dataLogDir === settings.dataDir ? {} : { dataLogDir: settings.dataLogDir }),
    next: nextCommand(served[0]!),
  }
}

/** One port, with what it speaks unless that is ZooKeeper's protocol in clear. */
function describePort({ key, address, secure }: ListeningPort): string {
  const at = isWildcard(address.host) ? `port ${address.port}, all interfaces` : reachable(address)
  if (key === 'webSocketPort') return `${at} (${secure ? 'wss' : 'ws'})`
  return secure ? `${at} (TLS)` : at
}

function nextCommand({ key, address, secure }: ListeningPort): string {
  const at = reachable(address)
  if (key === 'webSocketPort') return `new WebSocket('${secure ? 'wss' : 'ws'}://${at}/')`
  if (secure)
    return `zkCli.sh -server ${at} -client-configuration tls.properties   or   openssl s_client -connect ${at}`
  return `zkCli.sh -server ${at}   or   echo srvr | nc ${at.replace(/^\[?(.*?)\]?:(\d+)$/, '$1 $2')}`
}

/** The same as a block of lines for a terminal. */
export function readyBlock(facts: ReadyInfo): string {
  const title = facts.member === undefined ? 'Serving on' : 'Listens on'
  const lines = [
    ...facts.listening.split('; ').map((one, i) => [i === 0 ? title : '', one]),
    ...(facts.member === undefined ? [] : [['Member', facts.member]]),
    ['Data in', facts.dataDir],
    ...(facts.dataLogDir === undefined ? [] : [['Log in', facts.dataLogDir]]),
    ['Try it', facts.next],
    ['Stop it', 'Ctrl-C'],
  ]
  return `\n${lines.map(([head, text]) => `  ${head!.padEnd(11)}${text}`).join('\n')}\n\n`
}
