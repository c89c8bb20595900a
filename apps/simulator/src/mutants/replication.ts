import type { ServerMutant } from './mutant.ts'

const learner = 'packages/server/src/core/zab/learner.ts'
const leaderSessions = 'packages/server/src/pipeline/leader-sessions.ts'
const readOnly = 'packages/server/src/pipeline/read-only-pipeline.ts'
const observers = 'packages/server/src/ensemble/observer-master-role.ts'

export const replication: readonly ServerMutant[] = [
  {
    name: 'acknowledge-proposals-early',
    defect: 'A follower acknowledges everything it has logged when the first proposal is durable.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/zab/learner.ts',
        find: 'const last = Math.min(zxid, this.#lastLogged)',
        replace: 'const last = zxid < 0 ? zxid : this.#lastLogged',
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
          "if (this.#phase === 'waiting') { this.#ackNewLeader(this.#epoch); this.#store('currentEpoch') }",
      },
    ],
  },
  {
    name: 'epoch-before-history',
    defect: 'A follower stores the current epoch before the history of that epoch is durable.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/zab/learner.ts',
        find: "this.#work.push({ do: 'flush' })",
        replace: "this.#store('currentEpoch')",
      },
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
        replace: "if (epoch > acceptedEpoch) { this.#acceptEpoch(epoch); this.#store('acceptedEpoch') }",
      },
    ],
  },
  {
    name: 'epoch-reused',
    defect: 'A leader uses the last accepted epoch instead of the next one.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/zab/epoch-agreement.ts',
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
        file: 'packages/server/src/core/zab/commit-tracker.ts',
        find: 'if (!this.#canCommitAlone(verifier)) return this.#acks.quorumZxid(verifier, this.#lastCommitted, limit)',
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
        replace: `write(...[write, , callback]: Parameters<RequestPipeline['write']>): number {
          const logged = { header: { zxid: this.#tree.lastZxid }, txn: { type: 2 } }
          const entry = { logged, xid: write.xid, type: 2, callback, startedAt: 0 }
          if (write.type === 2) return (queueMicrotask(() => callback.onApplied(entry as never, 0)), 0)`,
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
        file: 'packages/server/src/pipeline/read-only-pipeline.ts',
        find: 'sync(_write: ClientWrite, _callback: WriteCallback): number {',
        replace:
          'sync(_write: ClientWrite, callback: WriteCallback): number {\n    if (callback !== undefined) return 0',
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
        file: 'packages/server/src/connections/session-handshake.ts',
        find: 'if (lastZxidSeen > BigInt(lastVisibleZxid)) {',
        replace: 'if (!isReadOnly && lastZxidSeen > BigInt(lastVisibleZxid)) {',
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
        file: 'packages/server/src/connections/session-handshake.ts',
        find: 'if (isReadOnly && readOnly !== true)',
        replace: 'if (isReadOnly && readOnly === undefined)',
      },
    ],
  },
  {
    name: 'observer-informed-early',
    defect: 'A follower informs its observers of a transaction when it is proposed.',
    servers: 3,
    with: 'observer-masters',
    changes: [
      {
        file: 'packages/server/src/ensemble/learner-role.ts',
        find: 'return this.#durability.append(work.first, work.payloads)',
        replace:
          'for (const [i, payload] of work.payloads.entries()) this.#observers?.committed(work.first + i, payload)\n        return this.#durability.append(work.first, work.payloads)',
      },
      {
        file: 'packages/server/src/ensemble/learner-role.ts',
        find: 'this.#observers?.committed(zxid, payload)',
        replace: '',
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
          'if (request.type === 9) return observer.send(PacketType.sync, 0)\n    const identities: readonly Identity[] = auth ?? []',
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
        find: 'if (!learner.isObserver) this.#newLeaderAcks.add(learner.serverId)',
        replace: 'this.#newLeaderAcks.add(learner.serverId)',
      },
    ],
  },
  {
    name: 'reconfig-by-old-quorum',
    defect: 'A reconfiguration is committed by a quorum of the old voters alone.',
    servers: 5,
    changes: [
      {
        file: 'packages/server/src/core/zab/commit-tracker.ts',
        find: 'if (this.#quorumZxid(active, zxid) < zxid || this.#quorumZxid(proposed!, zxid) < zxid) return false',
        replace: 'if (this.#quorumZxid(active, zxid) < zxid || proposed === undefined) return false',
      },
    ],
  },
  {
    name: 'reconfig-sent-early',
    defect: 'A learner that joins a leader gets an uncommitted reconfiguration.',
    servers: 5,
    changes: [
      {
        file: 'packages/server/src/core/zab/leader.ts',
        find: "this.#phase === 'broadcast' ? this.activeConfiguration : this.lastSeenConfiguration",
        replace: 'this.lastSeenConfiguration',
      },
    ],
  },
  {
    name: 'reconfig-forgotten',
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
        find: 'canUpgradeSessions: settings.localSessionsUpgradingEnabled,',
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
        file: 'packages/server/src/core/zab/sync-plan.ts',
        find: 'if (learner > window.max) return planForLearnerAhead(learner, sources)',
        replace: "if (learner > window.max) return { kind: 'diff', zxid: learner, entries: [] }",
      },
    ],
  },
  {
    name: 'stale-leader-notices-late',
    defect: 'A leader checks its followers only once in 32 ticks.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/core/zab/leader.ts',
        find: 'if (this.#tracker.designatedLeader === undefined && !this.#tracker.isQuorum(servers))',
        replace:
          'if (\n      this.#ticks.now % 32 === 0 &&\n      this.#tracker.designatedLeader === undefined &&\n      !this.#tracker.isQuorum(servers)\n    )',
      },
    ],
  },
  {
    name: 'sync-unconfirmed',
    defect: 'A leader answers sync without confirming its leadership.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/pipeline/leader-pipeline.ts',
        find: 'this.#confirmLeadership(() => (options.quorum.sendSync(learner), done()))',
        replace: '(options.quorum.sendSync(learner), done())',
      },
      {
        file: 'packages/server/src/pipeline/leader-pipeline.ts',
        find: 'this.#confirmLeadership(() => (hasReturned ? callback.onSynced() : (isDone = true)))',
        replace: 'isDone = !hasReturned || !callback',
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
        find: 'this.#syncs.push({ synced: () => callback.onSynced(), sessionId, position: this.#nextPosition++ })',
        replace: 'if (sessionId !== 0n) return 0 as unknown as undefined',
      },
    ],
  },
  {
    name: 'session-owner-ignored',
    defect: 'A leader applies requests from a server that the session has left.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/pipeline/leader-sessions.ts',
        find: 'return session.owner === owner ? ErrorCode.OK : ErrorCode.SESSIONMOVED',
        replace: 'return ErrorCode.OK',
      },
    ],
  },
  {
    name: 'session-routes-ignored',
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
    name: 'heartbeats-ignored',
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
    name: 'request-applied-twice',
    defect: 'A leader prepares the request of a follower twice.',
    servers: 3,
    changes: [
      {
        file: 'packages/server/src/pipeline/leader-pipeline.ts',
        find: 'if (!this.#hasEnded) this.#learnerOrder.submit(learner, request)',
        replace:
          'if (!this.#hasEnded) {\n      this.#learnerOrder.submit(learner, request)\n      this.#learnerOrder.submit(learner, request)\n    }',
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
        find: 'if (logged === undefined) return undefined\n    const { header, txn } = logged\n    if (appliesInSteps',
        replace:
          'if (logged === undefined || zxid % 100 === 50) return undefined\n    const { header, txn } = logged\n    if (appliesInSteps',
      },
    ],
  },
]
