import type { ServerSettings } from '@zabra/server/settings'

/** An address as a client types it: a wildcard is reached over loopback. */
export function reachable({ host, port }: { host: string; port: number }): string {
  if (host === '' || host === '0.0.0.0' || host === '::') return `127.0.0.1:${port}`
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** What to tell once the server serves: where, with which data, and what to type next. */
export function readyFacts(
  client: { host: string; port: number },
  settings: ServerSettings,
): { listening: string; dataDir: string; dataLogDir?: string; next: string } {
  const wildcard = client.host === '' || client.host === '0.0.0.0' || client.host === '::'
  const at = reachable(client)
  return {
    listening: wildcard ? `port ${client.port}, all interfaces` : at,
    dataDir: settings.dataDir,
    ...(settings.dataLogDir === settings.dataDir ? {} : { dataLogDir: settings.dataLogDir }),
    next: `zkCli.sh -server ${at}   or   echo srvr | nc ${at.replace(/^\[?(.*?)\]?:(\d+)$/, '$1 $2')}`,
  }
}

/** The same as a block of lines for a terminal. */
export function readyBlock(facts: ReturnType<typeof readyFacts>): string {
  const lines = [
    ['Serving on', facts.listening],
    ['Data in', facts.dataDir],
    ...(facts.dataLogDir === undefined ? [] : [['Log in', facts.dataLogDir]]),
    ['Try it', facts.next],
    ['Stop it', 'Ctrl-C'],
  ]
  return `\n${lines.map(([title, text]) => `  ${title!.padEnd(11)}${text}`).join('\n')}\n\n`
}
