import type { Change, ServerMutant } from './mutant.ts'

const tracker = 'packages/server/src/core/sessions/session-tracker.ts'

/** Keeps the digest of the tree consistent, which would otherwise detect the mutant. */
const WITHOUT_DIGESTS: readonly Change[] = [
  {
    file: 'packages/server/src/pipeline/apply-queue.ts',
    find: 'digest !== undefined && !tree.matches(digest)',
    replace: 'header.zxid < 0',
  },
  {
    file: replay(),
    find: 'if (digest) this.#compareDigest(digest, header.zxid, ',
    replace: 'if (Math.abs(0) > 1) this.#compareDigest(digest!, header.zxid, ',
  },
]

export const clients: readonly ServerMutant[] = [
  {
    name: 'sequence-from-children',
    defect: 'Sequence numbers come from the number of children, so that they repeat.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/operations/create.ts',
        find: 'sequenceNumber(parent.cversion)',
        replace: 'sequenceNumber(parent.childCount)',
      },
    ],
  },
  {
    name: 'version-ignored',
    defect: 'A write with an expected version succeeds whatever the version is.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/operations/change.ts',
        find: 'if (expected !== -1 && expected !== current) return',
        replace: 'if (expected < -1) return',
      },
    ],
  },
  {
    name: 'delete-with-children',
    defect: 'A znode with children can be deleted.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/operations/delete.ts',
        find: 'if (version !== -1 && version !== node.version) return reject(ErrorCode.BADVERSION)\n  if (node.childCount > 0) return reject(ErrorCode.NOTEMPTY)',
        replace: '',
      },
    ],
  },
  {
    name: 'multi-not-rolled-back',
    defect: 'The operations before a failed one of a multi stay in the pending tree.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/prepare/pending-tree.ts',
        find: 'if (last === undefined) break',
        replace: 'if (last === undefined || this.#undo!.length === 0) break',
      },
    ],
  },
  {
    name: 'multi-part-lost',
    defect: 'The last operation of a multi is logged and not applied.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/tree/apply-in-steps.ts',
        find: 'for (const sub of txns) {',
        replace: 'for (const sub of [...txns].slice(0, -1)) {',
      },
      ...WITHOUT_DIGESTS,
    ],
  },
  {
    name: 'large-multi-part-lost',
    defect: 'The last operation of a large multi is logged and not applied.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/tree/apply-in-steps.ts',
        find: 'if (isApplied) tree.applyPart(header, sub, sink)',
        replace: 'if (isApplied && (i <= STEP || i < txns.length)) tree.applyPart(header, sub, sink)',
      },
      ...WITHOUT_DIGESTS,
    ],
  },
  {
    name: 'ephemeral-left-behind',
    defect: 'The end of a session deletes all of its ephemeral znodes but the first.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/prepare/pending-tree.ts',
        find: 'for (const node of this.#tree.owners.ofSession(session)) yield',
        replace: 'for (const node of [...this.#tree.owners.ofSession(session)].slice(1)) yield',
      },
    ],
  },
  {
    name: 'expiry-early',
    defect: 'Sessions expire after half of their timeouts.',
    servers: 1,
    changes: [
      {
        file: tracker,
        find: 'const deadline = now + session.timeout\n',
        replace: 'const deadline = now + session.timeout / 2\n',
      },
    ],
  },
  {
    name: 'expiry-ignored',
    defect: 'Sessions never expire.',
    servers: 1,
    changes: [{ file: tracker, find: 'expired.push(session)', replace: 'void expired' }],
  },
  {
    name: 'session-ids-repeat',
    defect: 'Session ids do not depend on time, so that a restart issues them again.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/sessions/session-id-generator.ts',
        find: 'BigInt.asIntN(64, time | (BigInt(serverId & 0xff) << 56n))',
        replace: 'BigInt.asIntN(64, (time & 0n) | (BigInt(serverId & 0xff) << 56n)) + 1n',
      },
    ],
  },
  {
    name: 'reset-misses-data',
    defect: 'A reset of watches misses a change of data.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/reads/watch-restorer.ts',
        find: 'if (mzxid > since) watchNotifier',
        replace: 'if (since < 0) watchNotifier',
      },
    ],
  },
  {
    name: 'reset-misses-creation',
    defect: 'A reset of watches misses the creation of a node.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/reads/watch-restorer.ts',
        find: 'else watchNotifier.notify(listener, EventType.NodeCreated, path)',
        replace: 'else void watchNotifier',
      },
    ],
  },
  {
    name: 'reset-reports-unchanged',
    defect: 'A reset of watches reports a change of data that the client has seen.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/reads/watch-restorer.ts',
        find: 'if (mzxid > since) watchNotifier',
        replace: 'if (mzxid > 0 || since > 0) watchNotifier',
      },
    ],
  },
  {
    name: 'reset-reports-twice',
    defect: 'A reset of watches reports a change of data twice.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/reads/watch-restorer.ts',
        find: 'if (mzxid > since) watchNotifier',
        replace:
          'if (mzxid > since) watchNotifier.notify(listener, EventType.NodeDataChanged, path)\n    if (mzxid > since) watchNotifier',
      },
    ],
  },
  {
    name: 'reset-misses-children',
    defect: 'A reset of watches misses a change of children.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/reads/watch-restorer.ts',
        find: 'else if (pzxid > since)',
        replace: 'else if (since < 0)',
      },
    ],
  },
  {
    name: 'reset-drops-recursive',
    defect: 'A reset of watches does not register recursive watches.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/reads/watch-restorer.ts',
        find: 'return watches.watchRecursively(listener, path)',
        replace: 'return',
      },
    ],
  },
  {
    name: 'access-list-ignored',
    defect: 'Writes ignore access lists.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/prepare/prepare-context.ts',
        find: 'if (!this.options.acls.allows(node.acl, perms, request.identities)) reject(ErrorCode.NOAUTH)',
        replace: 'void [node, perms, request]',
      },
    ],
  },
  {
    name: 'events-for-all',
    defect: 'Events are sent to watchers that may not read the node.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/watches/watch-notifier.ts',
        find: 'if (!this.#rules.allows(acl, Perms.READ, watcher.identities)) return\n      frame',
        replace: 'frame',
      },
    ],
  },
  {
    name: 'watch-fires-twice',
    defect: 'A one-shot watch stays registered after it has fired.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/watches/watch-manager.ts',
        find: 'if ((modes & WatchBits.ONE_SHOT) !== 0) this.#consume(this.data, path, watcher)\n      notify(watcher)\n    })\n    if (notified',
        replace: 'notify(watcher)\n    })\n    if (notified',
      },
    ],
  },
  {
    name: 'child-watch-misses-deletions',
    defect: 'Child watches do not fire on deletions.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/watches/watch-notifier.ts',
        find: 'this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),\n    )\n    this.#childrenChanged(parent, parentAcl)',
        replace:
          'this.#watches.fireDeleted(path, this.#notifierOf(EventType.NodeDeleted, path, acl)),\n    )\n    void [parent, parentAcl]',
      },
    ],
  },
  {
    name: 'events-after-replies',
    defect: 'Notifications are delayed until the next turn, after replies that show the change.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/connections/request-processor.ts',
        find: 'if (!this.#readExecutor.captureNotification(frame)) this.#client.replyWriter.addNotification(frame)',
        replace:
          'const late = frame.slice(); this.#service.platform.clock.immediate(() => this.#service.runTurn(() => { if (this.#isOpen) this.#client.replyWriter.addNotification(late) }))',
      },
    ],
  },
  {
    name: 'quota-usage-not-lowered',
    defect: 'Deletions do not lower the usage of a quota.',
    servers: 1,
    changes: [
      {
        file: 'packages/server/src/core/tree/quota-tracker.ts',
        find: 'this.#add(path, -1, -bytes)',
        replace: '',
      },
    ],
  },
]

function replay(): string {
  return 'packages/server/src/persistence/replay.ts'
}
