import type { Cancel } from '@zabra/runtime'
import type { RoleMetrics } from '../admin/index.ts'
import type { Reconfigure } from '../core/prepare/index.ts'
import type { SessionRegistry } from '../core/sessions/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { ClientService } from '../connections/client-service.ts'
import { ContainerManager } from '../connections/container-manager.ts'
import type { RequestPipeline, PipelineContext } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'

export interface RoleClientsOptions<W extends RequestPipeline> {
  readonly sessions: SessionRegistry
  readonly pipeline: (kit: PipelineContext<ClientChannel>) => W
  /** What words say of the role. */
  readonly role: RoleMetrics
  readonly reconfigure?: Reconfigure
  readonly readOnly?: boolean
  /** Whether this server removes containers and nodes whose time is over. */
  readonly managesContainers?: boolean
}

/** What clients see of a server in one term of its role. */
export class RoleClients<W extends RequestPipeline> {
  readonly service: ClientService
  readonly pipeline: W
  readonly #kit: MemberContext
  readonly #reaper: ContainerManager | undefined
  #cancelTick: Cancel = () => {}

  constructor(kit: MemberContext, options: RoleClientsOptions<W>) {
    this.#kit = kit
    const {
      sessions,
      pipeline: writes,
      role,
      reconfigure,
      readOnly = false,
      managesContainers: reaps = false,
    } = options
    const { settings, ports, database: vault, stats, sessionIds } = kit
    let made!: W
    this.service = new ClientService({
      settings,
      ports,
      tree: vault.tree,
      sessions,
      createPipeline: (parts) => (made = writes(parts)),
      hasLocalSessions: settings.localSessionsEnabled,
      isReadOnly: readOnly,
      role,
      stats,
      sessionIds,
      outstandingLimit: () => kit.membership.shareOf(settings.globalOutstandingLimit),
      isReconfigEnabled: settings.reconfigEnabled,
      ...(reconfigure === undefined ? {} : { reconfigure }),
      onFailure: kit.failed,
    })
    this.pipeline = made
    if (!readOnly) kit.membership.writeConfigurationNode(vault.tree, Math.floor(ports.clock.wall()))
    this.#reaper = reaps ? new ContainerManager(this.service) : undefined
  }

  /** Takes clients from now on. */
  open(): void {
    this.#kit.clientPorts.attach(this.service)
    this.#reaper?.start()
    this.#tick()
  }

  /** Nobody is served any more, and nothing that is on its way is answered. */
  end(reason: string): void {
    this.#cancelTick()
    this.#reaper?.stop()
    this.#kit.clientPorts.detach(this.service)
    this.service.endRole(reason)
  }

  #tick(): void {
    const { clock } = this.#kit.ports
    const { tickTimeMs } = this.#kit.settings
    const wait = Math.max(1, Math.min(tickTimeMs, this.service.expiry.nextAt - clock.monotonic()))
    this.#cancelTick = clock.after(wait, 'session expiry', () => {
      this.service.runTurn(() => this.service.expiry.run())
      this.#tick()
    })
  }
}
