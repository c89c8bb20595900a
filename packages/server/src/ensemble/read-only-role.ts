import { LearnerSessions } from '../core/sessions/index.ts'
import type { ClientChannel } from '../connections/client-channel.ts'
import { ReadOnlyPipeline } from '../pipeline/index.ts'
import { RoleClients } from './role-clients.ts'
import { roleMetrics } from './role-metrics.ts'
import type { MemberContext } from './context.ts'

/** What a member does for clients that only want to look, while it has no leader. Nothing reaches the tree or the log. */
export class ReadOnlyRole {
  readonly #clients: RoleClients<ReadOnlyPipeline<ClientChannel>>

  constructor(context: MemberContext) {
    this.#clients = new RoleClients(context, {
      sessions: new LearnerSessions(new Map(context.database.sessions)),
      readOnly: true,
      role: roleMetrics(context, { mode: 'read-only', peerState: () => 'looking' }),
      pipeline: (parts) => new ReadOnlyPipeline(parts),
    })
    context.platform.logger.info({}, 'There is no leader: serving clients that only want to read')
    this.#clients.open()
  }

  end(): void {
    this.#clients.end('Closed: this server has a leader again')
  }
}
