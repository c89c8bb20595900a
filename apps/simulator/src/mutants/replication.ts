import type { Mutation } from './mutant.ts'

const learner = 'server/src/core/zab/learner.ts'
const commits = 'server/src/core/zab/commit-tracker.ts'
const plan = 'server/src/core/zab/sync-plan.ts'
const leaderSessions = 'server/src/pipeline/leader-sessions.ts'
const leaderWrites = 'server/src/pipeline/leader-pipeline.ts'
const readOnly = 'server/src/pipeline/read-only-pipeline.ts'
const observers = 'server/src/ensemble/observer-master-role.ts'

export const replication: readonly Mutation[] = [
  {
    name: 'acknowledge-proposals-early',
    mistake: 'A follower acknowledges all that it has logged when the first of it is durable.',
    servers: 3,
    changes: [
      {
        file: learner,
        find: 'const upTo = Math.min(zxid, this.#lastLogged)',
        replace: 'const upTo = zxid < 0 ? zxid : this.#lastLogged',
      },
    ],
  },
  {
    name: 'acknowledge-leader-early',
    mistake: 'A follower acknowledges NEWLEADER before the epoch is on its disk.',
    servers: 3,
    changes: [
      {
        file: learner,
        find: "if (this.#phase === 'waiting') this.#store('currentEpoch')",
        replace:
          "if (this.#phase === 'waiting') { this.#acknowledge(this.#epoch); this.#store('currentEpoch') }",
      },
    ],
  },
  {
    name: 'epoch-before-history',
    mistake: 'A follower writes the epoch down before the history that it stands for is durable.',
    servers: 3,
    changes: [
      { file: learner, find: "this.#work.push({ do: 'harden' })", replace: "this.#store('currentEpoch')" },
    ],
  },
  {
    name: 'epoch-promised-early',
    mistake: 'A follower promises an epoch before it is on its disk.',
    servers: 3,
    changes: [
      {
        file: learner,
        find: "if (epoch > acceptedEpoch) this.#store('acceptedEpoch')",
        replace: "if (epoch > acceptedEpoch) { this.#promise(epoch); this.#store('acceptedEpoch') }",
      },
    ],
  },
  {
    name: 'epoch-reused',
    mistake: 'A leader takes the epoch that was accepted last instead of the next one.',
    servers: 3,
    changes: [
      {
        file: 'server/src/core/zab/discovery.ts',
        find: 'Math.max(this.#epoch, acceptedEpoch + 1)',
        replace: 'Math.max(this.#epoch, acceptedEpoch, 1)',
      },
    ],
  },
  {
    name: 'commit-without-quorum',
    mistake: 'A leader commits what it has on its own disk.',
    servers: 3,
    changes: [
      {
        file: commits,
        find: 'if (!this.#isAlone(verifier)) return this.#proposals.point(verifier, this.lastCommitted, limit)',
        replace: '',
      },
    ],
  },
  {
    name: 'half-is-a-quorum',
    mistake: 'Half of the voters, rounded down, decide.',
    servers: 3,
    changes: [
      {
        file: 'server/src/core/quorum/verifier.ts',
        find: 'isQuorum: (ids) => countIn(all, ids) > half,',
        replace: 'isQuorum: (ids) => countIn(all, ids) >= half,',
      },
    ],
  },
  {
    name: 'groups-ignored',
    mistake: 'Where voters are in groups, more than half of them decide, whatever their groups and weights.',
    servers: 5,
    with: 'groups',
    changes: [
      {
        file: 'server/src/core/quorum/verifier.ts',
        find: 'isQuorum: (ids) => counted.filter((group) => weigh(group.members, ids) > group.half).length > half,',
        replace: 'isQuorum: (ids) => (counted, countIn(new Set(weightOf.keys()), ids) > weightOf.size / 2),',
      },
    ],
  },
  {
    name: 'half-a-group-decides',
    mistake: 'Half of the weight of a group is enough for its voice.',
    servers: 5,
    with: 'groups',
    changes: [
      {
        file: 'server/src/core/quorum/verifier.ts',
        find: 'weigh(group.members, ids) > group.half)',
        replace: 'weigh(group.members, ids) >= Math.max(1, group.half))',
      },
    ],
  },
  {
    name: 'read-only-writes',
    mistake: 'A server without a quorum says that it has deleted a znode.',
    servers: 3,
    with: 'read-only',
    changes: [
      {
        file: readOnly,
        find: 'write(): number {',
        replace: `write(...[write, , requester]: Parameters<Writes['write']>): number {
          const logged = { header: { zxid: this.#tree.lastZxid }, txn: { type: 2 } }
          const entry = { logged, xid: write.xid, type: 2, requester, startedAt: 0 }
          if (write.type === 2) return (queueMicrotask(() => requester.applied(entry as never, 0)), 0)`,
      },
    ],
  },
  {
    name: 'read-only-syncs',
    mistake: 'A server without a quorum answers sync.',
    servers: 3,
    with: 'read-only',
    changes: [
      {
        file: readOnly,
        find: 'sync(_write: Write, _requester: Requester): number {',
        replace:
          'sync(_write: Write, requester: Requester): number {\n    if (requester !== undefined) return 0',
      },
    ],
  },
  {
    name: 'read-only-behind',
    mistake: 'A server without a quorum lets in whoever has seen more than it has.',
    servers: 5,
    with: 'read-only',
    changes: [
      {
        file: 'server/src/connections/handshake-validation.ts',
        find: 'if (lastZxidSeen > BigInt(horizon)) {',
        replace: 'if (!core.readOnly && lastZxidSeen > BigInt(horizon)) {',
      },
    ],
  },
  {
    name: 'read-only-unasked',
    mistake: 'A server without a quorum serves those who have not said that it may.',
    servers: 3,
    with: 'read-only',
    changes: [
      {
        file: 'server/src/connections/handshake-validation.ts',
        find: 'if (core.readOnly && readOnly !== true)',
        replace: 'if (core.readOnly && readOnly === undefined)',
      },
    ],
  },
  {
    name: 'observer-told-early',
    mistake: 'A follower tells its observers of a transaction when it is proposed.',
    servers: 3,
    with: 'observer-masters',
    changes: [
      {
        file: 'server/src/ensemble/learner-role.ts',
        find: 'append: (zxid, payload) => this.#inOrder(() => this.#keeper.append(zxid, payload)),',
        replace:
          'append: (zxid, payload) => this.#inOrder(() => (this.#observers?.committed(zxid, payload), this.#keeper.append(zxid, payload))),',
      },
      {
        file: 'server/src/ensemble/learner-role.ts',
        find: 'return this.#observers?.committed(zxid, payload)',
        replace: 'return',
      },
    ],
  },
  {
    name: 'observer-synced-by-follower',
    mistake: 'A follower answers the sync of its observer by itself.',
    servers: 5,
    with: 'observer-masters',
    changes: [
      {
        file: observers,
        find: 'const identities: readonly Identity[] = auth ?? []',
        replace:
          'if (request.type === 9) return link.send(PacketType.sync, 0)\n    const identities: readonly Identity[] = auth ?? []',
      },
    ],
  },
  {
    name: 'observer-counts',
    mistake: 'An observer that is up to date counts for the quorum of a new leader.',
    servers: 5,
    changes: [
      {
        file: 'server/src/core/quorum/verifier.ts',
        find: 'isQuorum: (ids) => countIn(all, ids) > half,',
        replace: 'isQuorum: (ids) => Math.max(ids.size, countIn(all, ids)) > half,',
      },
      {
        file: 'server/src/core/zab/leader.ts',
        find: 'if (!handle.observer) this.#inStep.add(handle.server)',
        replace: 'this.#inStep.add(handle.server)',
      },
    ],
  },
  {
    name: 'change-by-old-quorum',
    mistake: 'A change of the ensemble is committed by a quorum of its old members alone.',
    servers: 5,
    changes: [
      {
        file: commits,
        find: 'if (this.#point(active, zxid) < zxid || this.#point(proposed!, zxid) < zxid) return false',
        replace: 'if (this.#point(active, zxid) < zxid || proposed === undefined) return false',
      },
    ],
  },
  {
    name: 'change-told-early',
    mistake: 'A learner that comes to a leader is given a change of the ensemble that is not committed.',
    servers: 5,
    changes: [
      {
        file: 'server/src/core/zab/leader.ts',
        find: "printConfiguration(this.#phase === 'broadcast' ? this.active : this.proposed)",
        replace: 'printConfiguration(this.proposed)',
      },
    ],
  },
  {
    name: 'change-forgotten',
    mistake:
      'A leader that lost its role before a change of the ensemble was committed forgets it, and leads again by the old quorum alone.',
    servers: 5,
    changes: [
      {
        file: 'server/src/ensemble/membership.ts',
        find: 'if (configuration.version === zxid) this.#logged = configuration',
        replace: 'if (configuration.version < 0) this.#logged = configuration',
      },
    ],
  },
  {
    name: 'local-session-stays-local',
    mistake: 'A leader refuses ephemeral znodes of local sessions instead of making them known to all.',
    servers: 3,
    changes: [
      {
        file: 'server/src/ensemble/leader-role.ts',
        find: 'upgradesSessions: settings.localSessionsUpgradingEnabled,',
        replace: '',
      },
    ],
  },
  {
    name: 'uncommitted-tail-kept',
    mistake: 'A server that logged more than was committed keeps it and goes on behind the new leader.',
    servers: 3,
    changes: [
      {
        file: plan,
        find: 'if (learner > window.max) return planAhead(learner, sources)',
        replace: "if (learner > window.max) return { how: 'diff', zxid: learner, entries: [] }",
      },
    ],
  },
  {
    name: 'deposed-notices-late',
    mistake: 'A leader looks only once in 32 ticks whether its followers are still there.',
    servers: 3,
    changes: [
      {
        file: 'server/src/core/zab/leader.ts',
        find: 'if (this.#commits.designated === undefined && !this.#commits.isQuorum(servers))',
        replace:
          'if (this.#tick % 32 === 0 && this.#commits.designated === undefined && !this.#commits.isQuorum(servers))',
      },
    ],
  },
  {
    name: 'sync-unconfirmed',
    mistake: 'A leader answers sync without asking whether it still leads.',
    servers: 3,
    changes: [
      {
        file: leaderWrites,
        find: 'this.#confirm(() => (parts.quorum?.synced(learner), done()))',
        replace: '(parts.quorum?.synced(learner), done())',
      },
      {
        file: leaderWrites,
        find: 'this.#confirm(() => (isWaiting ? requester.synced() : (isOver = true)))',
        replace: 'isOver = !isWaiting || !requester',
      },
    ],
  },
  {
    name: 'sync-not-forwarded',
    mistake: 'A follower answers sync by itself.',
    servers: 3,
    changes: [
      {
        file: 'server/src/pipeline/learner-pipeline.ts',
        find: 'this.#syncs.push({ synced: () => requester.synced(), sessionId, place: this.#places++ })',
        replace: 'if (sessionId !== 0n) return 0 as unknown as undefined',
      },
    ],
  },
  {
    name: 'owner-ignored',
    mistake: 'A leader carries out what comes from a server that the session has left.',
    servers: 3,
    changes: [
      {
        file: leaderSessions,
        find: 'return known.owner === asking ? ErrorCode.OK : ErrorCode.SESSIONMOVED',
        replace: 'return ErrorCode.OK',
      },
    ],
  },
  {
    name: 'observer-links-ignored',
    mistake:
      'A follower passes on what a session had sent by an observer, or by itself, before it came by another way.',
    servers: 3,
    with: 'observer-masters',
    changes: [
      {
        file: 'server/src/pipeline/session-routes.ts',
        find: 'if (last !== undefined) return last === from',
        replace: 'if (last !== undefined) return from >= 0',
      },
    ],
  },
  {
    name: 'touches-ignored',
    mistake: 'A leader does not hear of the sessions that live at its followers.',
    servers: 3,
    changes: [
      {
        file: leaderSessions,
        find: 'session.timeout = timeout\n    sessions.touch(session, clock.monotonic())',
        replace: 'session.timeout = timeout\n    void clock',
      },
    ],
  },
  {
    name: 'request-carried-out-twice',
    mistake: 'A leader prepares the request of a follower two times.',
    servers: 3,
    changes: [
      {
        file: leaderWrites,
        find: 'if (!this.#ended) this.#gates.push(learner, request)',
        replace:
          'if (!this.#ended) { this.#gates.push(learner, request); this.#gates.push(learner, request) }',
      },
    ],
  },
  {
    name: 'commit-not-applied',
    mistake: 'A follower leaves out one committed transaction of a hundred.',
    servers: 3,
    changes: [
      {
        file: 'server/src/pipeline/learner-pipeline.ts',
        find: 'if (logged === undefined) return\n',
        replace: 'if (logged === undefined || zxid % 100 === 50) return\n',
      },
    ],
  },
]
