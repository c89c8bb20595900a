import { mutant, type ServerMutant } from './mutant.ts'

const learner = 'core/zab/learner.ts'
const leaderSessions = 'pipeline/leader-sessions.ts'
const readOnly = 'pipeline/read-only-pipeline.ts'
const observers = 'ensemble/observer-master-role.ts'

export const replication: readonly ServerMutant[] = [
  mutant(
    'acknowledge-proposals-early',
    'A follower acknowledges everything it has logged when the first proposal is durable.',
    { servers: 3 },
    [
      [
        'core/zab/learner.ts',
        'const last = Math.min(zxid, this.#lastLogged)',
        'const last = zxid < 0 ? zxid : this.#lastLogged',
      ],
    ],
  ),
  mutant(
    'acknowledge-leader-early',
    'A follower acknowledges NEWLEADER before the epoch is on disk.',
    { servers: 3 },
    [
      [
        learner,
        "if (this.#phase === 'waiting') this.#store('currentEpoch')",
        "if (this.#phase === 'waiting') { this.#ackNewLeader(this.#epoch); this.#store('currentEpoch') }",
      ],
    ],
  ),
  mutant(
    'epoch-before-history',
    'A follower stores the current epoch before the history of that epoch is durable.',
    { servers: 3 },
    [['core/zab/learner.ts', "this.#work.push({ do: 'flush' })", "this.#store('currentEpoch')"]],
  ),
  mutant('epoch-promised-early', 'A follower accepts an epoch before it is on disk.', { servers: 3 }, [
    [
      learner,
      "if (epoch > acceptedEpoch) this.#store('acceptedEpoch')",
      "if (epoch > acceptedEpoch) { this.#acceptEpoch(epoch); this.#store('acceptedEpoch') }",
    ],
  ]),
  mutant('epoch-reused', 'A leader uses the last accepted epoch instead of the next one.', { servers: 3 }, [
    [
      'core/zab/epoch-agreement.ts',
      'Math.max(...counted.map(([, claim]) => claim.acceptedEpoch + 1))',
      'Math.max(1, ...counted.map(([, claim]) => claim.acceptedEpoch))',
    ],
  ]),
  mutant('commit-without-quorum', 'A leader commits what is on its own disk.', { servers: 3 }, [
    [
      'core/zab/commit-tracker.ts',
      'if (!this.#canCommitAlone(verifier)) return this.#acks.quorumZxid(verifier, this.#lastCommitted, limit)',
      '',
    ],
  ]),
  mutant('half-is-a-quorum', 'Half of the voters, rounded down, are a quorum.', { servers: 3 }, [
    [
      'core/quorum/verifier.ts',
      'isQuorum: (ids) => countIn(all, ids) > half,',
      'isQuorum: (ids) => countIn(all, ids) >= half,',
    ],
  ]),
  mutant(
    'groups-ignored',
    'With hierarchical quorums a majority of all voters is a quorum, whatever the groups and weights.',
    { servers: 5, with: 'groups' },
    [
      [
        'core/quorum/verifier.ts',
        'isQuorum: (ids) => counted.filter((group) => weigh(group.members, ids) > group.half).length > half,',
        'isQuorum: (ids) => (counted, countIn(new Set(weightOf.keys()), ids) > weightOf.size / 2),',
      ],
    ],
  ),
  mutant(
    'half-a-group-decides',
    'Half of the weight of a group counts as the group.',
    { servers: 5, with: 'groups' },
    [
      [
        'core/quorum/verifier.ts',
        'weigh(group.members, ids) > group.half)',
        'weigh(group.members, ids) >= Math.max(1, group.half))',
      ],
    ],
  ),
  mutant(
    'read-only-writes',
    'A read-only server acknowledges a deletion.',
    { servers: 3, with: 'read-only' },
    [
      [
        readOnly,
        'write(): number {',
        `write(...[write, , callback]: Parameters<RequestPipeline['write']>): number {
          const logged = { header: { zxid: this.#tree.lastZxid }, txn: { type: 2 } }
          const entry = { logged, xid: write.xid, type: 2, callback }
          if (write.type === 2) return (queueMicrotask(() => callback.onApplied(entry as never, 0)), 0)`,
      ],
    ],
  ),
  mutant('read-only-syncs', 'A read-only server answers sync.', { servers: 3, with: 'read-only' }, [
    [
      'pipeline/read-only-pipeline.ts',
      'sync(_write: ClientWrite, _callback: WriteCallback): number {',
      'sync(_write: ClientWrite, callback: WriteCallback): number {\n    if (callback !== undefined) return 0',
    ],
  ]),
  mutant(
    'read-only-behind',
    'A read-only server accepts clients that have seen a later zxid.',
    { servers: 5, with: 'read-only' },
    [
      [
        'connections/session-handshake.ts',
        'if (lastZxidSeen > BigInt(lastVisibleZxid)) {',
        'if (!isReadOnly && lastZxidSeen > BigInt(lastVisibleZxid)) {',
      ],
    ],
  ),
  mutant(
    'read-only-unasked',
    'A read-only server accepts clients that did not allow it.',
    { servers: 3, with: 'read-only' },
    [
      [
        'connections/session-handshake.ts',
        'if (isReadOnly && readOnly !== true)',
        'if (isReadOnly && readOnly === undefined)',
      ],
    ],
  ),
  mutant(
    'observer-informed-early',
    'A follower informs its observers of a transaction when it is proposed.',
    { servers: 3, with: 'observer-masters' },
    [
      [
        'ensemble/learner-role.ts',
        'return this.#append(work.first, work.payloads)',
        'for (const [i, payload] of work.payloads.entries()) this.#observers?.committed(work.first + i, payload)\n        return this.#append(work.first, work.payloads)',
      ],
      ['ensemble/learner-role.ts', 'this.#observers?.committed(zxid, payload)', ''],
    ],
  ),
  mutant(
    'observer-synced-by-follower',
    'A follower answers the sync of its observer itself.',
    { servers: 5, with: 'observer-masters' },
    [
      [
        observers,
        'this.#count(observer, admitted.sessionId, packet)',
        'if (admitted.type === 9) return observer.send(PacketType.sync, 0)\n    this.#count(observer, admitted.sessionId, packet)',
      ],
    ],
  ),
  mutant(
    'observer-counts',
    'An observer that is synced counts for the quorum of a new leader.',
    { servers: 5 },
    [
      [
        'core/quorum/verifier.ts',
        'isQuorum: (ids) => countIn(all, ids) > half,',
        'isQuorum: (ids) => Math.max(ids.size, countIn(all, ids)) > half,',
      ],
      [
        'core/zab/leader.ts',
        'if (learner.helpsToLead) this.#newLeaderAcks.add(learner.serverId)',
        'this.#newLeaderAcks.add(learner.serverId)',
      ],
    ],
  ),
  mutant(
    'reconfig-by-old-quorum',
    'A reconfiguration is committed by a quorum of the old voters alone.',
    { servers: 5 },
    [
      [
        'core/zab/commit-tracker.ts',
        'if (this.#quorumZxid(active, zxid) < zxid || this.#quorumZxid(proposed!, zxid) < zxid) return false',
        'if (this.#quorumZxid(active, zxid) < zxid || proposed === undefined) return false',
      ],
    ],
  ),
  mutant(
    'reconfig-sent-early',
    'A learner that joins a leader gets an uncommitted reconfiguration.',
    { servers: 5 },
    [
      [
        'core/zab/leader.ts',
        "this.#phase === 'broadcast' ? this.activeConfiguration : this.lastSeenConfiguration",
        'this.lastSeenConfiguration',
      ],
    ],
  ),
  mutant(
    'reconfig-forgotten',
    'A leader that lost its role before a reconfiguration was committed forgets it, and leads again with the old quorum alone.',
    { servers: 5 },
    [
      [
        'ensemble/membership.ts',
        'if (configuration.version === zxid) this.#logged = configuration',
        'if (configuration.version < 0) this.#logged = configuration',
      ],
    ],
  ),
  mutant(
    'local-session-stays-local',
    'A leader refuses ephemeral znodes of local sessions instead of upgrading the sessions.',
    { servers: 3 },
    [['ensemble/leader-role.ts', 'canUpgradeSessions: settings.localSessionsUpgradingEnabled,', '']],
  ),
  mutant(
    'uncommitted-tail-kept',
    'A learner that logged more than was committed keeps the tail and follows the new leader.',
    { servers: 3 },
    [
      [
        'core/zab/sync-plan.ts',
        'if (learner > window.max) return planForLearnerAhead(learner, sources)',
        "if (learner > window.max) return { kind: 'diff', zxid: learner, entries: [] }",
      ],
    ],
  ),
  mutant(
    'stale-leader-notices-late',
    'A leader checks its followers only once in 32 ticks.',
    { servers: 3 },
    [
      [
        'core/zab/leader.ts',
        'if (this.#tracker.designatedLeader === undefined && !this.#tracker.isQuorum(servers))',
        'if (\n      this.#ticks.now % 32 === 0 &&\n      this.#tracker.designatedLeader === undefined &&\n      !this.#tracker.isQuorum(servers)\n    )',
      ],
    ],
  ),
  mutant('sync-unconfirmed', 'A leader answers sync without confirming its leadership.', { servers: 3 }, [
    [
      'pipeline/leader-pipeline.ts',
      'this.#confirmLeadership(() => (options.quorum.sendSync(learner), done()))',
      '(options.quorum.sendSync(learner), done())',
    ],
    [
      'pipeline/leader-pipeline.ts',
      'this.#confirmLeadership(() => (hasReturned ? callback.onSynced() : (isDone = true)))',
      'isDone = !hasReturned || !callback',
    ],
  ]),
  mutant('sync-not-forwarded', 'A follower answers sync itself.', { servers: 3 }, [
    [
      'pipeline/learner-pipeline.ts',
      'this.#syncs.push({ synced: () => callback.onSynced(), sessionId, position: this.#nextPosition++ })',
      'if (sessionId !== 0n) return 0 as unknown as undefined',
    ],
  ]),
  mutant(
    'session-owner-ignored',
    'A leader applies requests from a server that the session has left.',
    { servers: 3 },
    [
      [
        'pipeline/leader-sessions.ts',
        'return session.owner === owner ? ErrorCode.OK : ErrorCode.SESSIONMOVED',
        'return ErrorCode.OK',
      ],
    ],
  ),
  mutant(
    'session-routes-ignored',
    'A follower forwards requests of a session that arrived by a route the session has left.',
    { servers: 3, with: 'observer-masters' },
    [
      [
        'pipeline/session-routes.ts',
        'if (last !== undefined) return last === from',
        'if (last !== undefined) return from >= 0',
      ],
    ],
  ),
  mutant('heartbeats-ignored', 'A leader ignores the session heartbeats of its followers.', { servers: 3 }, [
    [
      leaderSessions,
      'session.timeout = timeout\n    sessions.touch(session, clock.monotonic())',
      'session.timeout = timeout\n    void clock',
    ],
  ]),
  mutant('request-applied-twice', 'A leader prepares the request of a follower twice.', { servers: 3 }, [
    [
      'pipeline/leader-pipeline.ts',
      'if (!this.#hasEnded) this.#learnerOrder.submit(learner, request)',
      'if (!this.#hasEnded) {\n      this.#learnerOrder.submit(learner, request)\n      this.#learnerOrder.submit(learner, request)\n    }',
    ],
  ]),
  mutant('commit-not-applied', 'A follower skips one of a hundred committed transactions.', { servers: 3 }, [
    [
      'pipeline/learner-pipeline.ts',
      'if (logged === undefined) return this.#decodeInSteps(zxid, payload)\n',
      'if (logged === undefined) return this.#decodeInSteps(zxid, payload)\n    if (zxid % 100 === 50) return undefined\n',
    ],
  ]),
  mutant(
    'reconfig-version-ignored',
    'A leader accepts the change of a configuration that is not in force any more.',
    { servers: 3 },
    [
      [
        'ensemble/reconfigure.ts',
        'request.curConfigId !== BigInt(lastSeen.version)',
        'request.curConfigId > BigInt(lastSeen.version)',
      ],
    ],
  ),
  mutant(
    'packets-dropped',
    'A leader drops what it cannot queue for a member, instead of disconnecting the member.',
    { servers: 3 },
    [
      ['ensemble/peer-connection.ts', 'this.fail(`${this.unsentBytes} bytes are not read by it`)', 'return'],
      [
        'ensemble/peer-connection.ts',
        'writePacket(this.#out, type, zxid, data, auth)\n',
        'if (this.unsentBytes > this.#options.maxUnsentBytes) return\n    writePacket(this.#out, type, zxid, data, auth)\n',
      ],
    ],
  ),
  mutant(
    'oracle-not-asked',
    'The last one of two voters goes on alone, whatever the oracle says.',
    { servers: 3, with: 'oracle' },
    [
      [
        'core/zab/commit-tracker.ts',
        'return verifier.canAskOracle && this.#oracleAllows && !this.#learners.hasParticipants',
        'return verifier.canAskOracle && (this.#oracleAllows || this.#epoch >= 0) && !this.#learners.hasParticipants',
      ],
    ],
  ),
  mutant(
    'oracle-asked-once',
    'A leader that its oracle has once let lead alone goes on when the oracle takes that back.',
    { servers: 3, with: 'oracle' },
    [
      [
        'core/zab/commit-tracker.ts',
        'this.#oracleAllows = canLeadAlone',
        'this.#oracleAllows ||= canLeadAlone',
      ],
    ],
  ),
  mutant('never-ready', 'A learner never says that it is ready.', { servers: 3 }, [
    ['ensemble/learner-role.ts', 'const isHeard = silentMs <= limitMs', 'const isHeard = silentMs < 0'],
  ]),
  mutant(
    'ready-out-of-step',
    'A learner says that it is ready although transactions that its leader has committed wait to be applied.',
    { servers: 5, with: 'hanging-disks' },
    [
      [
        'ensemble/learner-role.ts',
        'const isApplied = lastZxid >= this.#committedATickAgo',
        'const isApplied = lastZxid >= 0',
      ],
    ],
  ),
  mutant(
    'proposals-beside-successor',
    'A leader accepts proposals after it has sent its successor one transaction more than the others.',
    { servers: 3, with: 'transfers' },
    [
      [
        'core/zab/step-down-policy.ts',
        'const isEnding = this.#transfer !== undefined || this.#isSuspended',
        'const isEnding = (this.#transfer !== undefined && this.#ahead === undefined) || this.#isSuspended',
      ],
    ],
  ),
]
