import type { Platform } from '@zabra/runtime'
import type { AuditLog } from '../audit/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import type { ClientService, PortStatus } from '../connections/client-service.ts'
import type { RoleMetrics } from '../connections/role-metrics.ts'
import type { ServerStats } from '../connections/stats.ts'
import type { SessionRegistry, SessionTracker } from '../core/sessions/index.ts'
import type { SessionId } from '../core/types.ts'
import type { Tree } from '../core/tree/index.ts'
import type { WatchManager } from '../core/watches/index.ts'
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
  | 'watchBytes'
  | 'isSecure'
  | 'origin'
  | 'destroy'
>

/** What commands report about a server. A `ClientService` is one. */
export interface ServerReport {
  readonly settings: ServerSettings
  readonly platform: Pick<Platform, 'clock' | 'disk' | 'system'>
  readonly tree: Tree
  readonly sessions: SessionRegistry
  readonly localSessions: SessionTracker | undefined
  readonly pipeline: Pick<
    ClientService['pipeline'],
    'outstanding' | 'queues' | 'isWritable' | 'digests' | 'closeSession'
  >
  readonly watches: Pick<WatchManager<ClientChannel>, 'data' | 'child' | 'size'>
  readonly stats: ServerStats
  readonly audit: AuditLog | undefined
  readonly slowRequests: Pick<ClientService['slowRequests'], 'newestFirst'>
  readonly topRequests: Pick<ClientService['topRequests'], 'look'>
  readonly memberChanges: Pick<ClientService['memberChanges'], 'change'>
  readonly throttler: Pick<ClientService['throttler'], 'size'>
  readonly connections: Iterable<ConnectionReport> & {
    readonly size: number
    ofSession(id: SessionId): ConnectionReport | undefined
  }
  readonly portStatus: PortStatus
  readonly role: RoleMetrics
  readonly isReadOnly: boolean
  /** Runs something that changes connections or the pipeline. */
  runTurn(action: () => void): void
  /** Calls `action` for each connection, over several turns, until it returns false. Always resolves. */
  forEachConnection(action: (connection: ConnectionReport) => boolean | void): Promise<void>
}
