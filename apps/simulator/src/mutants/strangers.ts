import type { ServerMutant } from './mutant.ts'

const election = 'packages/server/src/core/election/election.ts'
const discovery = 'packages/server/src/core/zab/discovery.ts'

/** Defects that only strangers show: programs that are no members. */
export const strangers: readonly ServerMutant[] = [
  {
    name: 'leader-moved-by-a-claim',
    defect: 'An established leader steps down, above the epoch that one connection claims to have accepted.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: discovery,
        find: '    learner.serverId = serverId\n',
        replace: `    if (this.#agreement.isEpochChosen && acceptedEpoch > this.epoch) {
      this.#options.emit({ do: 'store', what: 'acceptedEpoch', epoch: acceptedEpoch })
      return this.#options.fail('a server has accepted a later epoch')
    }
    learner.serverId = serverId
`,
      },
    ],
  },
  {
    name: 'epochs-used-up',
    defect: 'A leader in discovery counts any accepted epoch, however far it is.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: 'packages/server/src/core/zab/epoch-agreement.ts',
        find: 'export const MAX_EPOCH_JUMP = 1024',
        replace: 'export const MAX_EPOCH_JUMP = 2 ** 40',
      },
    ],
  },
  {
    name: 'rounds-used-up',
    defect: 'A looking server adopts any round and counts on beyond the last one.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: election,
        find: 'if (distance <= MAX_ROUND_JUMP) return true',
        replace: 'if (distance > 0) return true',
      },
      {
        file: election,
        find: 'this.#round = Math.min(this.#round + 1, MAX_ROUND)',
        replace: 'this.#round++',
      },
    ],
  },
  {
    name: 'members-replaced-by-a-vote',
    defect: 'A looking server adopts a newer configuration from a single vote.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: election,
        find: 'if (!isAuthenticated && !this.#isConfirmed(from, received, configuration)) return false',
        replace: '',
      },
    ],
  },
  {
    name: 'member-displaced-by-a-claim',
    defect: 'A connection that accepts the epoch takes the place of an active follower whose id it claims.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: 'packages/server/src/core/zab/learner-registry.ts',
        find: "return learner.state === 'active' && this.#silentFor(learner) <= LIVE_TICKS",
        replace: "return learner.state === 'unidentified'",
      },
    ],
  },
  {
    name: 'any-address-is-a-member',
    defect: 'A connection may claim the id of a member from any address.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: 'packages/server/src/ensemble/peer-addresses.ts',
        find: 'if (!isEnabled) return undefined',
        replace: 'if (isEnabled || id >= 0) return undefined',
      },
    ],
  },
  {
    name: 'log-limit-removed',
    defect: 'A server logs each connection that it refuses, however many strangers open.',
    servers: 3,
    with: 'strangers',
    changes: [
      {
        file: 'packages/server/src/ensemble/limited-log.ts',
        find: 'const INTERVAL_MS = 10_000',
        replace: 'const INTERVAL_MS = 0',
      },
    ],
  },
  {
    name: 'refused-without-end',
    defect: 'A member that its leader refuses joins it again at once.',
    servers: 3,
    with: 'refusals',
    changes: [
      {
        file: 'packages/server/src/ensemble/role-manager.ts',
        find: 'const FREE_ATTEMPTS = 3',
        replace: 'const FREE_ATTEMPTS = Infinity',
      },
    ],
  },
]
