import { type Logger, type Platform, silentLogger } from '@zabra/runtime'
import { httpServer, httpUpgrades, nodePlatform, NodeTlsNetwork, tlsNetwork } from '@zabra/runtime/node'
import { checkFiles as checkFilesOn, type FileProblem } from './check-files.ts'
import { createServer as createServerOn } from './server.ts'
import type { Server } from './server-types.ts'
import { warmUp } from './warm-up.ts'
import { defaults, type GivenServerSettings, type ServerSettings } from './settings/index.ts'

export interface ServerOptions {
  /** Receives the log (default: none). pino and loggers of its shape fit. */
  readonly logger?: Logger | undefined
  /** Ends a start that reads large data: it then rejects with the reason. Has no effect on a server that has started. */
  readonly signal?: AbortSignal | undefined
}

/**
 * Starts a server in this process, on its network and disk: a member of an ensemble where `ensemble` names one, else a standalone
 * server. Settings that are left out have their defaults, but no HTTP port is opened unless `adminPort` or `adminEnabled` is given.
 * Resolves when the ports are open; a member does not wait for a leader. Throws a `RangeError` that lists every invalid setting.
 * Rejects with a `DamageError` or `RecoveryError` when the files cannot be trusted, a `FolderLockedError` when another server uses
 * them, a `NetworkError` when a port cannot be bound, a `CertificateError` when a key or certificate cannot be used, a
 * `SettingFileError` when another file that a setting names cannot be used, and a `DiskError` when the disk refuses; each message says
 * what to do.
 */
export async function createServer(
  settings: GivenServerSettings,
  { logger = silentLogger, signal }: ServerOptions = {},
): Promise<Server> {
  const complete = completed(settings)
  const platform = await platformFor(complete)
  const server = await createServerOn(complete, { ...platform, logger }, { signal })
  warmUp(platform.clock)
  return server
}

/**
 * Opens the files that a server with these settings opens at its start: certificates, keys and their passwords, revocation lists,
 * tokens, the secret of sessions, the audit file, the key of backups and the credentials for S3. Changes nothing. Resolves to what a server could
 * not use.
 */
export async function checkFiles(settings: GivenServerSettings): Promise<readonly FileProblem[]> {
  const complete = completed(settings)
  return checkFilesOn(complete, await platformFor(complete))
}

/** An application that embeds a server expects no port that it has not asked for. */
const completed = (settings: GivenServerSettings): ServerSettings =>
  defaults(
    settings.adminEnabled === undefined
      ? { ...settings, adminEnabled: settings.adminPort !== undefined }
      : settings,
  )

/** Returns the platform of this process for the settings. Loads the WebSocket library only if a WebSocket port is set. */
async function platformFor({ webSocketPort }: ServerSettings): Promise<Platform> {
  const ws = webSocketPort === undefined ? undefined : await import('@zabra/runtime/ws')
  const platform = nodePlatform({
    networkFactories: {
      tls: tlsNetwork,
      http: httpServer,
      ...(ws && {
        webSocket: (limits, tls) =>
          ws.webSocketNetwork({
            ...limits,
            clock: platform.clock,
            upgrades: httpUpgrades(tls instanceof NodeTlsNetwork ? { tls } : {}),
          }),
      }),
    },
  })
  return platform
}
