import type { Kind } from './servers.ts'

/** The newest release of Apache ZooKeeper. */
export const apache: Kind = 'apache-3.9'
/** Clients of tests of the HTTP port send no pings. */
export const SESSION_MS = 600_000
/** Of the user ada with the password ada, who may do everything with the root node, as everybody may. */
export const authorization = 'digest ada:ada'

/** Returns settings of a server that answers commands on an HTTP port; `own` are of this server alone. */
export const adminSettings = (kind: Kind, port: number, own: Readonly<Record<string, string>>) => ({
  'admin.enableServer': 'true',
  'admin.serverPort': port,
  'admin.serverAddress': '127.0.0.1',
  'admin.rateLimiterIntervalInMS': 0,
  maxSessionTimeout: SESSION_MS,
  ...(kind === apache ? {} : own),
})
