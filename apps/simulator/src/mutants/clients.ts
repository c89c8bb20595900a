import { mutant, type Changes, type ServerMutant } from './mutant.ts'

const tracker = 'core/sessions/session-tracker.ts'

/** Keeps the digest of the tree consistent, which would otherwise detect the mutant. */
const WITHOUT_DIGESTS: Changes = [
  ['pipeline/apply-queue.ts', 'digest !== undefined && !tree.matches(digest)', 'header.zxid < 0'],
  [
    replay(),
    'if (digest) this.#compareDigest(digest, header.zxid, ',
    'if (Math.abs(0) > 1) this.#compareDigest(digest!, header.zxid, ',
  ],
]

export const clients: readonly ServerMutant[] = [
  mutant(
    'sequence-from-children',
    'Sequence numbers come from the number of children, so that they repeat.',
    { servers: 1 },
    [['core/operations/create.ts', 'sequenceNumber(parent.cversion)', 'sequenceNumber(parent.childCount)']],
  ),
  mutant(
    'version-ignored',
    'A write with an expected version succeeds whatever the version is.',
    { servers: 1 },
    [
      [
        'core/operations/change.ts',
        'if (expected !== -1 && expected !== current) return',
        'if (expected < -1) return',
      ],
    ],
  ),
  mutant('delete-with-children', 'A znode with children can be deleted.', { servers: 1 }, [
    [
      'core/operations/delete.ts',
      'if (version !== -1 && version !== node.version) return reject(ErrorCode.BADVERSION)\n  if (node.childCount > 0) return reject(ErrorCode.NOTEMPTY)',
      '',
    ],
  ]),
  mutant(
    'multi-not-rolled-back',
    'The operations before a failed one of a multi stay in the pending tree.',
    { servers: 1 },
    [
      [
        'core/prepare/pending-tree.ts',
        'if (last === undefined) break',
        'if (last === undefined || this.#undo!.length === 0) break',
      ],
    ],
  ),
  mutant('multi-part-lost', 'The last operation of a multi is logged and not applied.', { servers: 1 }, [
    [
      'core/tree/apply-in-steps.ts',
      'for (const sub of txns) {',
      'for (const sub of [...txns].slice(0, -1)) {',
    ],
    ...WITHOUT_DIGESTS,
  ]),
  mutant(
    'large-multi-part-lost',
    'The last operation of a large multi is logged and not applied.',
    { servers: 1 },
    [
      [
        'core/tree/apply-in-steps.ts',
        'if (isApplied) countAclEntries(',
        'if (isApplied && (txns.length <= STEP || sub !== txns.at(-1))) countAclEntries(',
      ],
      ...WITHOUT_DIGESTS,
    ],
  ),
  mutant(
    'ephemeral-left-behind',
    'The end of a session deletes all of its ephemeral znodes but the first.',
    { servers: 1 },
    [
      [
        'core/prepare/pending-tree.ts',
        'for (const node of this.#tree.owners.ofSession(session)) yield',
        'for (const node of [...this.#tree.owners.ofSession(session)].slice(1)) yield',
      ],
    ],
  ),
  mutant('expiry-early', 'Sessions expire after half of their timeouts.', { servers: 1 }, [
    [tracker, 'const deadline = now + session.timeout\n', 'const deadline = now + session.timeout / 2\n'],
  ]),
  mutant('pings-ignored', 'Pings of clients do not prolong their sessions.', { servers: 1 }, [
    [
      'connections/request-processor.ts',
      'this.#service.touchSession(session)\n    const canStartEarly',
      'if (type !== OpCode.ping) this.#service.touchSession(session)\n    const canStartEarly',
    ],
  ]),
  mutant('expiry-ignored', 'Sessions never expire.', { servers: 1 }, [
    [tracker, 'expired.push(session)', 'void expired'],
  ]),
  mutant(
    'session-ids-repeat',
    'Session ids do not depend on time, so that a restart issues them again.',
    { servers: 1 },
    [
      [
        'core/sessions/session-id-generator.ts',
        'BigInt.asIntN(64, time | (BigInt(serverId & 0xff) << 56n))',
        'BigInt.asIntN(64, (time & 0n) | (BigInt(serverId & 0xff) << 56n)) + 1n',
      ],
    ],
  ),
  mutant('reset-misses-data', 'A reset of watches misses a change of data.', { servers: 1 }, [
    ['core/reads/watch-restorer.ts', 'if (mzxid > since) watchNotifier', 'if (since < 0) watchNotifier'],
  ]),
  mutant('reset-misses-creation', 'A reset of watches misses the creation of a node.', { servers: 1 }, [
    [
      'core/reads/watch-restorer.ts',
      'else watchNotifier.notify(listener, EventType.NodeCreated, path)',
      'else void watchNotifier',
    ],
  ]),
  mutant(
    'reset-reports-unchanged',
    'A reset of watches reports a change of data that the client has seen.',
    { servers: 1 },
    [
      [
        'core/reads/watch-restorer.ts',
        'if (mzxid > since) watchNotifier',
        'if (mzxid > 0 || since > 0) watchNotifier',
      ],
    ],
  ),
  mutant('reset-reports-twice', 'A reset of watches reports a change of data twice.', { servers: 1 }, [
    [
      'core/reads/watch-restorer.ts',
      'if (mzxid > since) watchNotifier',
      'if (mzxid > since) watchNotifier.notify(listener, EventType.NodeDataChanged, path)\n    if (mzxid > since) watchNotifier',
    ],
  ]),
  mutant('reset-misses-children', 'A reset of watches misses a change of children.', { servers: 1 }, [
    ['core/reads/watch-restorer.ts', 'else if (pzxid > since)', 'else if (since < 0)'],
  ]),
  mutant('reset-drops-recursive', 'A reset of watches does not register recursive watches.', { servers: 1 }, [
    ['core/reads/watch-restorer.ts', 'return watches.watchRecursively(listener, path)', 'return'],
  ]),
  mutant('access-list-ignored', 'Writes ignore access lists.', { servers: 1 }, [
    [
      'core/prepare/prepare-context.ts',
      'if (!this.options.acls.allows(node.acl, perms, request.identities)) reject(ErrorCode.NOAUTH)',
      'void [node, perms, request]',
    ],
  ]),
  mutant('events-for-all', 'Events are sent to watchers that may not read the node.', { servers: 1 }, [
    [
      'core/watches/watch-notifier.ts',
      'if (!this.#rules.allows(acl, Perms.READ, watcher.identities)) return\n      frame',
      'frame',
    ],
  ]),
  mutant('watch-fires-twice', 'A one-shot watch stays registered after it has fired.', { servers: 1 }, [
    [
      'core/watches/watch-manager.ts',
      'if ((modes & WatchBits.ONE_SHOT) !== 0) this.#consume(this.data, path, watcher)\n      notify(watcher)\n    })\n    if (notified',
      'notify(watcher)\n    })\n    if (notified',
    ],
  ]),
  mutant('child-watch-misses-deletions', 'Child watches do not fire on deletions.', { servers: 1 }, [
    [
      'core/watches/watch-notifier.ts',
      'this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),\n      )\n    this.#childrenChanged(parent, parentAcl)',
      'this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),\n      )\n    void [parent, parentAcl]',
    ],
  ]),
  mutant(
    'events-after-replies',
    'Notifications are delayed until the next turn, after replies that show the change.',
    { servers: 1 },
    [
      [
        'connections/request-processor.ts',
        'if (!this.#isStepping) return replyWriter.addNotification(frame)',
        'const late = frame.slice(); return void this.#service.platform.clock.immediate(() => this.#service.runTurn(() => { if (this.#isOpen) this.#client.replyWriter.addNotification(late) }))',
      ],
    ],
  ),
  mutant(
    'stale-delete',
    'A delete with a version that is older than that of the znode succeeds.',
    { servers: 1 },
    [
      [
        'core/operations/delete.ts',
        'if (version !== -1 && version !== node.version) return',
        'if (version > node.version) return',
      ],
    ],
  ),
  mutant(
    'stale-check',
    'A check with a version that is older than that of the znode succeeds.',
    { servers: 1 },
    [
      [
        'core/operations/change.ts',
        'path: node.path, version: nextVersion(node.version, version) }',
        'path: node.path, version: nextVersion(node.version, version < node.version ? -1 : version) }',
      ],
    ],
  ),
  mutant(
    'large-session-left-behind',
    'The end of a session deletes its first 100 ephemeral znodes.',
    { servers: 1 },
    [
      [
        'core/tree/apply-in-steps.ts',
        'for (const path of paths2Delete) {',
        'for (const path of paths2Delete.slice(0, STEP)) {',
      ],
      [
        'core/tree/apply-in-steps.ts',
        'const others = [...tree.owners.ofSession(sessionId)]',
        'const others = paths2Delete.length > STEP ? [] : [...tree.owners.ofSession(sessionId)]',
      ],
      ...WITHOUT_DIGESTS,
    ],
  ),
  mutant(
    'listing-skips-deleted',
    'A long listing lacks a child that is deleted while the listing is written.',
    { servers: 1, with: 'large-tree' },
    [
      [
        'core/tree/listing.ts',
        'this.#next = this.#tree.store.nextOf(node)\n    this.#collect(node)',
        'this.#next = this.#tree.store.nextOf(node)\n    this.#left--\n    Object.assign(this, { count: this.count - 1 })',
      ],
    ],
  ),
  mutant(
    'expiry-by-wall-clock',
    'Sessions expire by the wall clock, which an administrator moves.',
    { servers: 1 },
    [
      [
        'connections/session-expiry.ts',
        'const now = clock.monotonic()\n    // Decided before',
        'const now = clock.wall() - 1_700_000_000_000\n    // Decided before',
      ],
    ],
  ),
  mutant(
    'session-of-anyone',
    'A client with the password of a session resumes it, although it belongs to another user.',
    { servers: 3, with: 'logins' },
    [
      [
        'connections/session-users.ts',
        'return proof === undefined || this.#options.passwords.isUserOf(id, proof, user)',
        'return proof === undefined || user.length > 0',
      ],
    ],
  ),
  mutant(
    'session-of-any-certificate',
    'A client with the password of a session resumes it, although it was opened with another certificate.',
    { servers: 3, with: 'certificates' },
    [
      [
        'connections/session-handshake.ts',
        'this.#service.passwords.passwordFor(session.id, certificateOf(this.#client))',
        'this.#service.passwords.passwordFor(session.id)',
      ],
      [
        'connections/session-handshake.ts',
        'return passwords.matches(sessionId, passwd, certificateIdentity)',
        'return passwords.matches(sessionId, passwd)',
      ],
    ],
  ),
  mutant(
    'session-user-lost-in-upgrade',
    'A local session belongs to no user any more when it becomes global.',
    { servers: 3, with: 'logins' },
    [
      ['pipeline/proposer.ts', 'if (userProof !== undefined) this.#storeUser(id, userProof, owner)', ''],
      ['connections/client-service.ts', 'if (userProof === undefined) return\n', 'return\n'],
    ],
  ),
  mutant(
    'login-confirmed-early',
    'A login is confirmed before the leader has revalidated the session, so that the requests behind it wait for that.',
    { servers: 3, with: 'logins' },
    [['connections/client-connection.ts', 'this.#isRevalidating = true\n', 'this.#isRevalidating = false\n']],
  ),
  mutant('quota-usage-not-lowered', 'Deletions do not lower the usage of a quota.', { servers: 1 }, [
    ['core/tree/quotas.ts', 'this.#add(path, -1, -bytes)', ''],
  ]),
  {
    name: 'events-dropped-while-closing',
    defect: 'A client that is closing drops events, while reads sent earlier still show the changes.',
    servers: 1,
    changes: [
      {
        file: 'packages/client/src/session/session.ts',
        find: 'this.dispatcher.nextToReply === closeSession',
        replace: 'this.#closingError !== undefined',
      },
    ],
  },
]

function replay(): string {
  return 'persistence/replay.ts'
}
