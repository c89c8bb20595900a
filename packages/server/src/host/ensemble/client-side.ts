import type { Cancel } from '@zabra/runtime'
import type { RoleFigures } from '../../admin/index.ts'
import type { Reconfigure } from '../../core/prepare/index.ts'
import type { Sessions } from '../../core/sessions/index.ts'
import type { ClientConnection } from '../connection.ts'
import { ServerCore } from '../core.ts'
import { Reaper } from '../reaper.ts'
import type { Writes, WritesKit } from '../writes/index.ts'
import type { MemberKit } from './member-kit.ts'

export interface ClientSideOptions<W extends Writes> {
  readonly sessions: Sessions
  readonly writes: (kit: WritesKit<ClientConnection>) => W
  /** What words say of the role. */
  readonly role: RoleFigures
  readonly reconfigure?: Reconfigure
  readonly readOnly?: boolean
  /** Whether this server removes containers and nodes whose time is over. */
  readonly reaps?: boolean
}

/** What clients see of a server in one term of its role. */
export class ClientSide<W extends Writes> {
  readonly core: ServerCore
  readonly writes: W
  readonly #kit: MemberKit
  readonly #reaper: Reaper | undefined
  #cancelTick: Cancel = () => {}

  constructor(kit: MemberKit, options: ClientSideOptions<W>) {
    this.#kit = kit
    const { sessions, writes, role, reconfigure, readOnly = false, reaps = false } = options
    const { settings, ports, vault, stats, sessionIds } = kit
    let made!: W
    this.core = new ServerCore({
      settings,
      ports,
      tree: vault.tree,
      sessions,
      writes: (parts) => (made = writes(parts)),
      localSessions: settings.localSessionsEnabled,
      readOnly,
      role,
      stats,
      sessionIds,
      outstandingLimit: () => kit.membership.shareOf(settings.globalOutstandingLimit),
      reconfigEnabled: settings.reconfigEnabled,
      ...(reconfigure === undefined ? {} : { reconfigure }),
      failed: kit.failed,
    })
    this.writes = made
    if (!readOnly) kit.membership.show(vault.tree, Math.floor(ports.clock.wall()))
    this.#reaper = reaps ? new Reaper(this.core) : undefined
  }

  /** Takes clients from now on. */
  open(): void {
    this.#kit.door.open(this.core)
    this.#reaper?.start()
    this.#tick()
  }

  /** Nobody is served any more, and nothing that is on its way is answered. */
  end(reason: string): void {
    this.#cancelTick()
    this.#reaper?.stop()
    this.#kit.door.close(this.core)
    this.core.end(reason)
  }

  #tick(): void {
    const { clock } = this.#kit.ports
    const { tickTimeMs } = this.#kit.settings
    const wait = Math.max(1, Math.min(tickTimeMs, this.core.nextExpiry - clock.monotonic()))
    this.#cancelTick = clock.after(wait, 'session expiry', () => {
      this.core.turn(() => this.core.expireSessions())
      this.#tick()
    })
  }
}
