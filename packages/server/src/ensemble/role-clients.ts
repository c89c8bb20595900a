import type { Cancel } from '@zabra/runtime'
import type { RoleMetrics } from '../admin/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { ClientService } from '../connections/client-service.ts'
import { ContainerManager } from '../connections/container-manager.ts'
import type { Reconfigure } from '../core/prepare/index.ts'
import type { SessionRegistry } from '../core/sessions/index.ts'
import type { PipelineContext, RequestPipeline } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'

export interface RoleClientsOptions<P extends RequestPipeline> {
  readonly sessions: SessionRegistry
  readonly pipeline: (context: PipelineContext<ClientChannel>) => P
  /** What four-letter commands report of the role. */
  readonly role: RoleMetrics
  /** Validates a change of the ensemble; only where this server decides. */
  readonly reconfigure?: Reconfigure
  readonly readOnly?: boolean
  /** Whether this server deletes empty containers and expired TTL nodes. */
  readonly managesContainers?: boolean
}

/** The clients of a server in one role: their service, its pipeline, and the timers of sessions and containers. */
export class RoleClients<P extends RequestPipeline> {
  readonly service: ClientService
  readonly pipeline: P
  readonly #context: MemberContext
  readonly #containers: ContainerManager | undefined
  #cancelExpiry: Cancel = () => {}

  constructor(context: MemberContext, options: RoleClientsOptions<P>) {
    this.#context = context
    const { sessions, role, reconfigure, readOnly = false, managesContainers = false } = options
    const { settings, platform, database, membership, stats, sessionIds } = context
    const { isStandalone } = membership
    let pipeline!: P
    this.service = new ClientService({
      settings,
      ports: platform,
      tree: database.tree,
      sessions,
      createPipeline: (parts) => (pipeline = options.pipeline(parts)),
      hasLocalSessions: settings.localSessionsEnabled && !isStandalone,
      isReadOnly: readOnly,
      role,
      stats,
      sessionIds,
      outstandingLimit: () => membership.shareOf(settings.globalOutstandingLimit),
      isReconfigEnabled: settings.reconfigEnabled && !isStandalone,
      ...(reconfigure === undefined ? {} : { reconfigure }),
      onFailure: context.failed,
    })
    this.pipeline = pipeline
    if (!readOnly && !isStandalone)
      membership.writeConfigurationNode(database.tree, Math.floor(platform.clock.wall()))
    this.#containers = managesContainers ? new ContainerManager(this.service) : undefined
  }

  /** Serves clients from now on. */
  open(): void {
    this.#context.clientPorts.attach(this.service)
    this.#containers?.start()
    this.#scheduleExpiry()
  }

  /** Refuses new connections, and ends no session and no container any more. */
  stopAccepting(): void {
    this.service.isAccepting = false
    this.#cancelExpiry()
    this.#containers?.stop()
  }

  /** Closes all connections. Requests in flight get no reply: their outcome is unknown when a role ends. */
  end(reason: string): void {
    this.#cancelExpiry()
    this.#containers?.stop()
    this.#context.clientPorts.detach(this.service)
    this.service.endRole(reason)
  }

  #scheduleExpiry(): void {
    const { clock } = this.#context.platform
    const { tickTimeMs } = this.#context.settings
    const wait = Math.max(1, Math.min(tickTimeMs, this.service.expiry.nextAt - clock.monotonic()))
    this.#cancelExpiry = clock.after(wait, 'session expiry', () => {
      this.service.runTurn(() => this.service.expiry.run())
      this.#scheduleExpiry()
    })
  }
}
