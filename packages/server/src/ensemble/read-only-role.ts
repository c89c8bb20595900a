import type { ClientChannel } from '../connections/client-channel.ts'
import { LearnerSessions } from '../core/sessions/index.ts'
import { ReadOnlyPipeline } from '../pipeline/index.ts'
import type { MemberContext } from './context.ts'
import { RoleClients } from './role-clients.ts'

/** Serves clients in read-only mode while a member has no leader (quorum-protocol 17). Nothing changes the tree or the log. */
export class ReadOnlyRole {
  readonly #clients: RoleClients<ReadOnlyPipeline<ClientChannel>>

  constructor(context: MemberContext) {
    this.#clients = new RoleClients(context, {
      sessions: new LearnerSessions(context.database.sessions),
      isReadOnly: true,
      role: { mode: 'read-only', peerState: () => 'looking' },
      pipeline: (pipelineContext) => new ReadOnlyPipeline(pipelineContext),
    })
    context.platform.logger.info({}, 'There is no leader: serving read-only clients')
    this.#clients.open()
  }

  /** Ends the role. Resolves when all connections are closed. */
  end(): Promise<void> {
    return this.#clients.end('Closed: this server has a leader again')
  }
}
