import type { Clock, Connection } from '@zabra/runtime'
import { ServerStats } from '../../connections/stats.ts'
import { defaults } from '../../settings/index.ts'
import type { MemberContext } from '../context.ts'
import { LearnerConnection, type LearnerConnectionEvents } from '../learner-connection.ts'

/** Returns the connection of a member to learner 2, which a configuration names by default. */
export function learnerOn(
  connection: Connection,
  clock: Clock,
  { isNamed = true, ...events }: Partial<LearnerConnectionEvents> & { readonly isNamed?: boolean } = {},
): LearnerConnection {
  const context = {
    settings: defaults({ dataDir: '/d', clientPort: 0 }),
    platform: { clock },
    membership: { member: () => (isNamed ? {} : undefined) },
    security: { isAuthenticated: () => false },
    stats: new ServerStats(),
  } as unknown as MemberContext
  return new LearnerConnection(1, 2, connection, context, {
    received: (read) => read(),
    packet() {},
    progress() {},
    lost() {},
    ...events,
  })
}
