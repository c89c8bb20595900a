import type { Platform } from '@zabra/runtime'
import type { ClientChannel } from '../connections/client-channel.ts'
import type { ClientService, PortStatus } from '../connections/client-service.ts'
import type { RoleMetrics } from '../connections/role-metrics.ts'
import type { ServerStats } from '../connections/stats.ts'
import type { SessionRegistry, SessionTracker } from '../core/sessions/index.ts'
import type { Tree } from '../core/tree/index.ts'
import type { WatchManager, WatchNotifier } from '../core/watches/index.ts'
import type { ServerSettings } from '../settings/index.ts'

/** The directories of a server. */
export interface DirectoryReport {
  readonly snapshots: string
  readonly logs: string
}

/** What commands report about a client connection. */
export type ConnectionReport = Pick<
  ClientChannel,
  | 'host'
  | 'port'
  | 'sessionId'
  | 'session'
  | 'establishedAt'
  | 'requests'
  | 'replyWriter'
  | 'flow'
  | 'watchedPaths'
  | 'isSecure'
>

/** What commands report about a server. A `ClientService` is one. */
export interface ServerReport {
  readonly settings: ServerSettings
  readonly platform: Pick<Platform, 'clock' | 'disk' | 'system'>
  readonly tree: Tree
  readonly sessions: SessionRegistry
  readonly localSessions: SessionTracker | undefined
  readonly pipeline: Pick<ClientService['pipeline'], 'outstanding' | 'isWritable' | 'digests'>
  readonly watches: Pick<WatchManager<ClientChannel>, 'data' | 'child' | 'size'>
  readonly watchNotifier: WatchNotifier<ClientChannel>
  readonly stats: ServerStats
  readonly connections: Iterable<ConnectionReport> & { readonly size: number }
  readonly portStatus: PortStatus
  readonly role: RoleMetrics
  readonly isReadOnly: boolean
}
