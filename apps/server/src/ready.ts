import type { ServerSettings } from '@zabra/server/settings'

/** A listening port, with the key of its setting. */
export interface ListeningPort {
  readonly key: 'clientPort' | 'secureClientPort' | 'webSocketPort'
  readonly address: { readonly host: string; readonly port: number }
  readonly secure: boolean
}

const isWildcard = (host: string): boolean => host === '' || host === '0.0.0.0' || host === '::'

/** Formats an address for a client; a wildcard becomes the loopback address. */
export function reachable({ host, port }: { host: string; port: number }): string {
  if (isWildcard(host)) return `127.0.0.1:${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** What the program announces after the start. */
export interface ReadyInfo {
  readonly listening: string
  /** State of an ensemble member that does not serve clients yet; absent for a standalone server. */
  readonly member?: string
  /** Says that clients need not prove who they are; absent where they do. */
  readonly access?: string
  readonly dataDir: string
  readonly dataLogDir?: string
  readonly next: string
}

/** Returns the announcement: listening ports, state of a member, data folders and a command to try. */
export function readyInfo(ports: readonly ListeningPort[], settings: ServerSettings): ReadyInfo {
  const { ensemble, serverId } = settings
  return {
    listening: ports.map(describePort).join('; '),
    ...(ensemble === undefined
      ? {}
      : {
          member: `${serverId} of ${ensemble.members.size}, looking for a leader; it serves once there is one`,
        }),
    ...(demandsAuthentication(ports, settings)
      ? {}
      : { access: 'no authentication: every client that reaches these ports is served' }),
    dataDir: settings.dataDir,
    ...(settings.dataLogDir === settings.dataDir ? {} : { dataLogDir: settings.dataLogDir }),
    next: nextCommand(ports[0]!),
  }
}

/** Returns whether every client has to authenticate: by SASL, by an enforced scheme, or with a certificate on each port. */
function demandsAuthentication(ports: readonly ListeningPort[], settings: ServerSettings): boolean {
  const { requireSasl, enforceAuthEnabled, sslClientAuth } = settings
  if (requireSasl || enforceAuthEnabled) return true
  return sslClientAuth === 'need' && ports.every(({ secure }) => secure)
}

/** Formats a port, with its protocol unless that is plain ZooKeeper. */
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

/** Formats the announcement as lines for a terminal. */
export function readyBlock(info: ReadyInfo): string {
  const title = info.member === undefined ? 'Serving on' : 'Listens on'
  const lines = [
    ...info.listening.split('; ').map((one, i) => [i === 0 ? title : '', one]),
    ...(info.member === undefined ? [] : [['Member', info.member]]),
    ...(info.access === undefined ? [] : [['Access', info.access]]),
    ['Data in', info.dataDir],
    ...(info.dataLogDir === undefined ? [] : [['Log in', info.dataLogDir]]),
    ['Try it', info.next],
    ['Stop it', 'Ctrl-C'],
  ]
  return `\n${lines.map(([head, text]) => `  ${head!.padEnd(11)}${text}`).join('\n')}\n\n`
}
