import type { Change, Mutation } from './mutation.ts'

const preparer = 'server/src/core/prepare/preparer.ts'
const tracker = 'server/src/core/sessions/session-tracker.ts'
const reads = 'server/src/core/reads/chunked-reply.ts'
const watches = 'server/src/core/watches/watch-manager.ts'

/** Nothing is noticed by the digest of the tree. */
const WITHOUT_DIGESTS: readonly Change[] = [
  {
    file: 'server/src/pipeline/apply-queue.ts',
    find: 'digest !== undefined && !tree.matches(digest)',
    replace: 'header.zxid < 0',
  },
  {
    file: replay(),
    find: 'if (digest) this.#compareDigest(digest, header.zxid, ',
    replace: 'if (Math.abs(0) > 1) this.#compareDigest(digest!, header.zxid, ',
  },
]

export const clients: readonly Mutation[] = [
  {
    name: 'sequence-from-children',
    mistake: 'Numbers of sequential znodes come from how many children there are, and are used again.',
    servers: 1,
    changes: [
      {
        file: preparer,
        find: 'sequenceNumber(parent.cversion)',
        replace: 'sequenceNumber(parent.childCount)',
      },
    ],
  },
  {
    name: 'version-ignored',
    mistake: 'A write with an expected version succeeds whatever the version is.',
    servers: 1,
    changes: [
      {
        file: preparer,
        find: 'if (expected !== -1 && expected !== current) return',
        replace: 'if (expected < -1) return',
      },
    ],
  },
  {
    name: 'delete-with-children',
    mistake: 'A znode with children can be deleted.',
    servers: 1,
    changes: [
      {
        file: preparer,
        find: 'if (version !== -1 && version !== node.version) return refuse(ErrorCode.BADVERSION)\n    if (node.childCount > 0) return refuse(ErrorCode.NOTEMPTY)',
        replace: '',
      },
    ],
  },
  {
    name: 'multi-not-rolled-back',
    mistake: 'Parts before the one that failed stay in the view that the next writes are prepared against.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/prepare/pending-tree.ts',
        find: 'if (last === undefined) break',
        replace: 'if (last === undefined || this.#undo!.length === 0) break',
      },
    ],
  },
  {
    name: 'multi-part-lost',
    mistake: 'The last part of a transaction is logged and not applied.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/tree/stepwise.ts',
        find: 'undefined\n  for (const sub of txns) {',
        replace: 'undefined\n  for (const sub of [...txns].slice(0, -1)) {',
      },
      ...WITHOUT_DIGESTS,
    ],
  },
  {
    name: 'large-multi-part-lost',
    mistake: 'The last part of a large transaction is logged and not applied.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/tree/stepwise.ts',
        find: 'i++\n    if (isApplied)',
        replace: 'i++\n    if (isApplied && i < txns.length)',
      },
      ...WITHOUT_DIGESTS,
    ],
  },
  {
    name: 'ephemeral-left-behind',
    mistake: 'The end of a session names all of its ephemeral znodes but the first.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/prepare/pending-tree.ts',
        find: 'for (const node of this.#tree.owners.ofSession(session)) yield',
        replace: 'for (const node of [...this.#tree.owners.ofSession(session)].slice(1)) yield',
      },
    ],
  },
  {
    name: 'expiry-early',
    mistake: 'Sessions live half of their timeouts.',
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
    mistake: 'Sessions whose time is over go on.',
    servers: 1,
    changes: [{ file: tracker, find: 'over.push(session)', replace: 'void over' }],
  },
  {
    name: 'session-ids-repeat',
    mistake: 'Ids of sessions do not depend on time, so that a restart gives them out again.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/sessions/session-id-generator.ts',
        find: 'BigInt.asIntN(64, time | (BigInt(serverId & 0xff) << 56n))',
        replace: 'BigInt.asIntN(64, (time & 0n) | (BigInt(serverId & 0xff) << 56n)) + 1n',
      },
    ],
  },
  {
    name: 'watch-dropped-on-return',
    mistake: 'A change of data that happened while a session was away is not told to it.',
    servers: 1,
    changes: [
      {
        file: reads,
        find: 'if (mzxid > since)',
        replace: 'if (since < 0)',
      },
    ],
  },
  {
    name: 'exist-watch-dropped-on-return',
    mistake: 'A node that was made while a session was away that waits for it is not told to it.',
    servers: 1,
    changes: [
      {
        file: reads,
        find: 'if (this.#tree.has(path)) this.#firing.tell(listener, EventType.NodeCreated, path)',
        replace: 'if (this.#tree.has(path)) return',
      },
    ],
  },
  {
    name: 'watch-told-on-return-unchanged',
    mistake: 'A session that returns is told that data have changed which it knows.',
    servers: 1,
    changes: [
      {
        file: reads,
        find: 'if (mzxid > since)',
        replace: 'if (mzxid > 0 || since > 0)',
      },
    ],
  },
  {
    name: 'watch-told-twice-on-return',
    mistake: 'A session that returns is told of changed data twice.',
    servers: 1,
    changes: [
      {
        file: reads,
        find: 'if (mzxid > since)',
        replace:
          'if (mzxid > since) this.#firing.tell(listener, EventType.NodeDataChanged, path)\n      if (mzxid > since)',
      },
    ],
  },
  {
    name: 'child-watch-dropped-on-return',
    mistake: 'A change of children that happened while a session was away is not told to it.',
    servers: 1,
    changes: [
      {
        file: reads,
        find: 'else if (pzxid > since)',
        replace: 'else if (since < 0)',
      },
    ],
  },
  {
    name: 'recursive-watch-dropped-on-return',
    mistake: 'A watch on a whole subtree is not set again when its session returns.',
    servers: 1,
    changes: [
      {
        file: reads,
        find: 'return this.#watches.watchRecursively(listener, path)',
        replace: 'return',
      },
    ],
  },
  {
    name: 'access-list-ignored',
    mistake: 'Writes do not look at access lists.',
    servers: 1,
    changes: [
      {
        file: preparer,
        find: 'if (!this.#options.acls.allows(node.acl, perms, request.identities)) refuse(ErrorCode.NOAUTH)',
        replace: 'void [node, perms, request]',
      },
    ],
  },
  {
    name: 'events-for-all',
    mistake: 'An event of a node is told to whoever watches it, allowed to read it or not.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/watches/watch-notifier.ts',
        find: 'if (!this.#rules.allows(acl, Perms.READ, listener.identities)) return\n      frame',
        replace: 'frame',
      },
    ],
  },
  {
    name: 'watch-fires-twice',
    mistake: 'A watch stays when it has fired.',
    servers: 1,
    changes: [
      {
        file: watches,
        find: 'if ((modes & Mode.ONE_SHOT) !== 0) this.#consume(this.data, path, watcher)\n      notify(watcher)\n    })\n    if (told',
        replace: 'notify(watcher)\n    })\n    if (told',
      },
    ],
  },
  {
    name: 'child-watch-deaf',
    mistake: 'Watches on children do not hear of deletions.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/watches/watch-notifier.ts',
        find: 'this.#watches.fireDeleted(path, this.#teller(EventType.NodeDeleted, path, acl)),\n    )\n    this.#childrenChanged(parent, parentAcl)',
        replace:
          'this.#watches.fireDeleted(path, this.#teller(EventType.NodeDeleted, path, acl)),\n    )\n    void [parent, parentAcl]',
      },
    ],
  },
  {
    name: 'events-after-replies',
    mistake: 'Notifications are held back until the next turn, behind the replies that show the change.',
    servers: 1,
    changes: [
      {
        file: 'server/src/connections/client-connection.ts',
        find: "if (this.#phase === 'open' && !this.#reading.tell(frame)) this.outbox.add(frame)",
        replace:
          "const late = frame.slice(); this.#core.ports.clock.soon(() => this.#core.turn(() => { if (this.#phase === 'open') this.outbox.add(late) }))",
      },
    ],
  },
  {
    name: 'quota-use-not-lowered',
    mistake: 'Deletions do not lower the use of a quota.',
    servers: 1,
    changes: [
      {
        file: 'server/src/core/tree/quota-tracker.ts',
        find: 'this.#add(path, -1, -bytes)',
        replace: '',
      },
    ],
  },
]

function replay(): string {
  return 'server/src/persistence/replay.ts'
}
