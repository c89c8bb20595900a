import type { ServerMutant } from './mutant.ts'

const learner = 'packages/server/src/core/zab/learner.ts'
const commits = 'packages/server/src/core/zab/commit-tracker.ts'
const plan = 'packages/server/src/core/zab/sync-plan.ts'
const leaderSessions = 'packages/server/src/pipeline/leader-sessions.ts'
const leaderWrites = 'packages/server/src/pipeline/leader-pipeline.ts'
const readOnly = 'packages/server/src/pipeline/read-only-pipeline.ts'
const observers = 'packages/server/src/ensemble/observer-master-role.ts'

export const replication: readonly ServerMutant[] = [
  {
    name: 'acknowledge-proposals-early',
    defect: 'A follower acknowledges everything it has logged when the first proposal is durable.',
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
    defect: 'A follower acknowledges NEWLEADER before the epoch is on disk.',
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
    defect: 'A follower stores the current epoch before the history of that epoch is durable.',
    servers: 3,
    changes: [
      { file: learner, find: "this.#work.push({ do: 'harden' })", replace: "this.#store('currentEpoch')" },
    ],
  },
  {
    name: 'epoch-promised-early',
    defect: 'A follower accepts an epoch before it is on disk.',
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
    defect: 'A leader uses the last accepted epoch instead of the next one.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/zab/discovery.ts',
        find: 'Math.max(this.#epoch, acceptedEpoch + 1)',
        replace: 'Math.max(this.#epoch, acceptedEpoch, 1)',
      },
    ],
  },
  {
    name: 'commit-without-quorum',
    defect: 'A leader commits what is on its own disk.',
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
    defect: 'Half of the voters, rounded down, are a quorum.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/quorum/verifier.ts',
        find: 'isQuorum: (ids) => countIn(all, ids) > half,',
        replace: 'isQuorum: (ids) => countIn(all, ids) >= half,',
      },
    ],
  },
  {
    name: 'groups-ignored',
    defect:
      'With hierarchical quorums a majority of all voters is a quorum, whatever the groups and weights.',
    servers: 5,
    with: 'groups',
    changes: [
      {
        file: 'packages/server/src/core/quorum/verifier.ts',
        find: 'isQuorum: (ids) => counted.filter((group) => weigh(group.members, ids) > group.half).length > half,',
        replace: 'isQuorum: (ids) => (counted, countIn(new Set(weightOf.keys()), ids) > weightOf.size / 2),',
      },
    ],
  },
  {
    name: 'half-a-group-decides',
    defect: 'Half of the weight of a group counts as the group.',
    servers: 5,
    with: 'groups',
    changes: [
      {
        file: 'packages/server/src/core/quorum/verifier.ts',
        find: 'weigh(group.members, ids) > group.half)',
        replace: 'weigh(group.members, ids) >= Math.max(1, group.half))',
      },
    ],
  },
  {
    name: 'read-only-writes',
    defect: 'A read-only server acknowledges a deletion.',
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
    defect: 'A read-only server answers sync.',
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
    defect: 'A read-only server accepts clients that have seen a later zxid.',
    servers: 5,
    with: 'read-only',
    changes: [
      {
        file: 'packages/server/src/connections/handshake-validation.ts',
        find: 'if (lastZxidSeen > BigInt(horizon)) {',
        replace: 'if (!core.readOnly && lastZxidSeen > BigInt(horizon)) {',
      },
    ],
  },
  {
    name: 'read-only-unasked',
    defect: 'A read-only server accepts clients that did not allow it.',
    servers: 3,
    with: 'read-only',
    changes: [
      {
        file: 'packages/server/src/connections/handshake-validation.ts',
        find: 'if (core.readOnly && readOnly !== true)',
        replace: 'if (core.readOnly && readOnly === undefined)',
      },
    ],
  },
  {
    name: 'observer-told-early',
    defect: 'A follower informs its observers of a transaction when it is proposed.',
    servers: 3,
    with: 'observer-masters',
    changes: [
      {
        file: 'packages/server/src/ensemble/learner-role.ts',
        find: 'append: (zxid, payload) => this.#inOrder(() => this.#keeper.append(zxid, payload)),',
        replace:
          'append: (zxid, payload) => this.#inOrder(() => (this.#observers?.committed(zxid, payload), this.#keeper.append(zxid, payload))),',
      },
      {
        file: 'packages/server/src/ensemble/learner-role.ts',
        find: 'return this.#observers?.committed(zxid, payload)',
        replace: 'return',
      },
    ],
  },
  {
    name: 'observer-synced-by-follower',
    defect: 'A follower answers the sync of its observer itself.',
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
    defect: 'An observer that is synced counts for the quorum of a new leader.',
    servers: 5,
    changes: [
      {
        file: 'packages/server/src/core/quorum/verifier.ts',
        find: 'isQuorum: (ids) => countIn(all, ids) > half,',
        replace: 'isQuorum: (ids) => Math.max(ids.size, countIn(all, ids)) > half,',
      },
      {
        file: 'packages/server/src/core/zab/leader.ts',
        find: 'if (!handle.observer) this.#inStep.add(handle.server)',
        replace: 'this.#inStep.add(handle.server)',
      },
    ],
  },
  {
    name: 'change-by-old-quorum',
    defect: 'A reconfiguration is committed by a quorum of the old voters alone.',
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
    defect: 'A learner that joins a leader gets an uncommitted reconfiguration.',
    servers: 5,
    changes: [
      {
        file: 'packages/server/src/core/zab/leader.ts',
        find: "printConfiguration(this.#phase === 'broadcast' ? this.active : this.proposed)",
        replace: 'printConfiguration(this.proposed)',
      },
    ],
  },
  {
    name: 'change-forgotten',
    defect:
      'A leader that lost its role before a reconfiguration was committed forgets it, and leads again with the old quorum alone.',
    servers: 5,
    changes: [
      {
        file: 'packages/server/src/ensemble/membership.ts',
        find: 'if (configuration.version === zxid) this.#logged = configuration',
        replace: 'if (configuration.version < 0) this.#logged = configuration',
      },
    ],
  },
  {
    name: 'local-session-stays-local',
    defect: 'A leader refuses ephemeral znodes of local sessions instead of upgrading the sessions.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/ensemble/leader-role.ts',
        find: 'upgradesSessions: settings.localSessionsUpgradingEnabled,',
        replace: '',
      },
    ],
  },
  {
    name: 'uncommitted-tail-kept',
    defect: 'A learner that logged more than was committed keeps the tail and follows the new leader.',
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
    defect: 'A leader checks its followers only once in 32 ticks.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/zab/leader.ts',
        find: 'if (this.#commits.designated === undefined && !this.#commits.isQuorum(servers))',
        replace:
          'if (this.#tick % 32 === 0 && this.#commits.designated === undefined && !this.#commits.isQuorum(servers))',
      },
    ],
  },
  {
    name: 'sync-unconfirmed',
    defect: 'A leader answers sync without confirming its leadership.',
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
    defect: 'A follower answers sync itself.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/pipeline/learner-pipeline.ts',
        find: 'this.#syncs.push({ synced: () => requester.synced(), sessionId, place: this.#places++ })',
        replace: 'if (sessionId !== 0n) return 0 as unknown as undefined',
      },
    ],
  },
  {
    name: 'owner-ignored',
    defect: 'A leader applies requests from a server that the session has left.',
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
    defect: 'A follower forwards requests of a session that arrived by a route the session has left.',
    servers: 3,
    with: 'observer-masters',
    changes: [
      {
        file: 'packages/server/src/pipeline/session-routes.ts',
        find: 'if (last !== undefined) return last === from',
        replace: 'if (last !== undefined) return from >= 0',
      },
    ],
  },
  {
    name: 'touches-ignored',
    defect: 'A leader ignores the session heartbeats of its followers.',
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
    defect: 'A leader prepares the request of a follower twice.',
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
    defect: 'A follower skips one of a hundred committed transactions.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/pipeline/learner-pipeline.ts',
        find: 'if (logged === undefined) return\n',
        replace: 'if (logged === undefined || zxid % 100 === 50) return\n',
      },
    ],
  },
]
