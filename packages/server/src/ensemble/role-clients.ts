import type { Cancel } from '@zabra/runtime'
import { auditedContext, AuditedPipeline } from '../audit/index.ts'
import type { LeaderMetrics, RoleMetrics } from '../admin/index.ts'
import type { ObserverReport } from '../connections/role-metrics.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { ClientService } from '../connections/client-service.ts'
import { ContainerManager } from '../connections/container-manager.ts'
import type { Reconfigure } from '../core/prepare/index.ts'
import { printConfiguration, votersOf, type ServerId } from '../core/quorum/index.ts'
import type { SessionRegistry } from '../core/sessions/index.ts'
import type { PipelineContext, RequestPipeline } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'

/** The status of a role for four-letter commands. */
export type RoleStatus = { readonly mode: 'standalone' } | MemberRoleStatus

export interface MemberRoleStatus {
  readonly mode: 'leader' | 'follower' | 'observer' | 'read-only'
  /** Returns the phase, in the words of Apache ZooKeeper. */
  readonly peerState: () => string
  readonly leader?: () => LeaderMetrics
  /** The learner master of an observer. */
  readonly observerMasterId?: ServerId
  /** Returns the observers that this member keeps synced; undefined on a follower that serves none. */
  readonly observers?: () => readonly ObserverReport[] | undefined
  readonly yieldLeadership?: () => string
}

export interface RoleClientsOptions<P extends RequestPipeline> {
  readonly sessions: SessionRegistry
  readonly pipeline: (context: PipelineContext<ClientChannel>) => P
  readonly role: RoleStatus
  /** Validates a change of the ensemble; only where this server decides. */
  readonly reconfigure?: Reconfigure
  readonly isReadOnly?: boolean
  /** Whether this server deletes empty containers and expired TTL nodes. */
  readonly managesContainers?: boolean
}

/** Serves the clients of a server in one role: owns their service, its pipeline, and the timers of sessions and containers. */
export class RoleClients<P extends RequestPipeline> {
  readonly service: ClientService
  readonly pipeline: P
  readonly #context: MemberContext
  readonly #containers: ContainerManager | undefined
  #cancelExpiry: Cancel = () => {}

  constructor(context: MemberContext, options: RoleClientsOptions<P>) {
    this.#context = context
    const { sessions, role, reconfigure, isReadOnly: readOnly = false, managesContainers = false } = options
    const { settings, platform, database, membership, stats, sessionIds, passwords, audit } = context
    const { isStandalone } = membership
    let pipeline!: P
    this.service = new ClientService({
      settings,
      platform: platform,
      tree: database.tree,
      sessions,
      createPipeline(parts) {
        pipeline = options.pipeline(audit === undefined ? parts : auditedContext(parts, audit))
        return audit === undefined ? pipeline : new AuditedPipeline(pipeline, audit, database.tree)
      },
      audit,
      hasLocalSessions: settings.localSessionsEnabled && !isStandalone,
      isReadOnly: readOnly,
      role: role.mode === 'standalone' ? role : roleMetrics(context, role),
      stats,
      sessionIds,
      passwords,
      ...(isStandalone
        ? {}
        : { outstandingLimit: () => membership.shareOf(settings.globalOutstandingLimit) }),
      servers: () => membership.active.members.size,
      isReconfigEnabled: settings.reconfigEnabled && !isStandalone,
      ...(reconfigure === undefined ? {} : { reconfigure }),
      onFailure: context.failed,
    })
    this.pipeline = pipeline
    if (!readOnly && !isStandalone)
      membership.writeConfigurationNode(database.tree, Math.floor(platform.clock.wall()))
    this.#containers = managesContainers ? new ContainerManager(this.service) : undefined
  }

  /**
   * Serves clients from now on, unless `isServing` is false: a leader ends sessions and removes containers also where the clients of other
   * members alone have them.
   */
  open({ isServing = true }: { readonly isServing?: boolean } = {}): void {
    if (isServing) this.#context.clientPorts.attach(this.service)
    this.#containers?.start()
    this.#scheduleExpiry()
  }

  /**
   * Refuses new connections, replies to the requests that have arrived, and closes the connections, for a server that stops. Takes
   * `syncLimit` ticks at most, and a second for clients that do not read.
   */
  async finish(): Promise<void> {
    const { syncLimit, tickTimeMs } = this.#context.settings
    this.service.isAccepting = false
    this.#cancelExpiry()
    this.#containers?.stop()
    await this.service.closeConnections(syncLimit * tickTimeMs)
  }

  /** Refuses new connections and destroys those that there are, while the role goes on. Requests in flight get no reply. */
  disconnect(reason: string): void {
    this.#context.clientPorts.detach(this.service)
    void this.service.forEachConnection((channel) => channel.destroy('role_ended', reason))
  }

  /**
   * Serves no client from now on. Requests in flight get no reply: their outcome is unknown when a role ends. Resolves when all
   * connections are closed.
   */
  end(reason: string): Promise<void> {
    this.#cancelExpiry()
    this.#containers?.stop()
    this.#context.clientPorts.detach(this.service)
    return this.service.endRole(reason)
  }

  #scheduleExpiry(): void {
    const { clock } = this.#context.platform
    const { tickTimeMs } = this.#context.settings
    const dueAt = Math.max(
      clock.monotonic() + 1,
      Math.min(clock.monotonic() + tickTimeMs, this.service.expiry.nextAt),
    )
    this.#cancelExpiry = clock.after(dueAt - clock.monotonic(), 'session expiry', () => {
      // This server stood still. The pings that clients sent meanwhile wait in its sockets, and on other servers.
      if (clock.monotonic() - dueAt >= tickTimeMs / 2)
        this.#cancelExpiry = clock.after(tickTimeMs, 'session expiry after a pause', () => this.#expire())
      else this.#expire()
    })
  }

  #expire(): void {
    this.service.runTurn(() => this.service.expiry.run())
    this.#scheduleExpiry()
  }
}

/** Returns the metrics of a member for four-letter commands, evaluated when a command reads them. */
function roleMetrics({ settings, membership }: MemberContext, status: MemberRoleStatus): RoleMetrics {
  return {
    mode: status.mode,
    get member() {
      const [own] = membership.member(membership.self)?.addresses ?? []
      const observers = status.observers?.()
      return {
        peerState: status.peerState(),
        quorumSize: votersOf(membership.active).length,
        conf: {
          serverId: membership.self,
          initLimit: settings.initLimit,
          syncLimit: settings.syncLimit,
          electionAlg: settings.electionAlg,
          electionPort: own?.electionPort ?? 0,
          quorumPort: own?.quorumPort ?? 0,
          isObserver: membership.role === 'observer',
          membership: printConfiguration(membership.active),
        },
        ...(status.leader === undefined ? {} : { leader: status.leader() }),
        ...(status.observerMasterId === undefined ? {} : { observerMasterId: status.observerMasterId }),
        ...(observers === undefined ? {} : { observers }),
        yieldLeadership: status.yieldLeadership ?? (() => 'Not a leader: there is nothing to yield.'),
        requestLeadership: () => 'This server cannot request leadership; send ydld to the leader.',
      }
    },
  }
}
