import { LearnerSessions } from '../../core/sessions/index.ts'
import type { ClientConnection } from '../connection.ts'
import { ReadOnlyWrites } from '../writes/index.ts'
import { ClientSide } from './client-side.ts'
import { roleFigures } from './figures.ts'
import type { MemberKit } from './member-kit.ts'

/** What a member does for clients that only want to look, while it has no leader. Nothing reaches the tree or the log. */
export class ReadOnlyTerm {
  readonly #clients: ClientSide<ReadOnlyWrites<ClientConnection>>

  constructor(kit: MemberKit) {
    this.#clients = new ClientSide(kit, {
      sessions: new LearnerSessions(new Map(kit.vault.sessions)),
      readOnly: true,
      role: roleFigures(kit, { mode: 'read-only', peerState: () => 'looking' }),
      writes: (parts) => new ReadOnlyWrites(parts),
    })
    kit.ports.logger.info({}, 'There is no leader: serving clients that only want to read')
    this.#clients.open()
  }

  end(): void {
    this.#clients.end('Closed: this server has a leader again')
  }
}
