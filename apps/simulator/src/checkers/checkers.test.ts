import { ErrorCode, EventType, OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { committedHistoryOf } from '../history/committed-history.ts'
import { storedAcl } from '../history/acl.ts'
import { QUOTA_PATH, MAX_BYTES, QUOTA_NODES, QUOTA_STATS } from '../history/quota.ts'
import type { Request } from '../history/records.ts'
import { checkers, type Evidence } from './index.ts'
import {
  HistoryBuilder,
  begin,
  end,
  get,
  setAcl,
  logged,
  make,
  notice,
  put,
  remove,
  session,
  set,
  stat,
} from './testing/history-builder.ts'

/** For each checker: a history that violates its property, and the violation it must report. */
const bad: Record<string, (one: HistoryBuilder) => Partial<Evidence> | void> = {
  agreement: (one) => ({
    logs: [one.log('s1', one.transactions), one.log('s2', [begin(1), make(2, 0, '/other', 1)])],
  }),
  epochs: () => ({
    epochs: [
      { server: 's1', at: 1, accepted: 2, current: 2, isNew: false },
      { server: 's1', at: 2, accepted: 1, current: 1, isNew: false },
    ],
  }),
  transactions: (one) => void one.transactions.push(put(4, 5, '/w/a', 7)),
  'acknowledged-writes': (one) => void one.answer(set, 9, { err: 0, stat: stat({ mzxid: 9, version: 1 }) }),
  results: (one) => {
    one.transactions.push(put(4, 10, '/w/a', 1))
    one.answer(set, 4, { err: 0, stat: stat({ mzxid: 4, version: 2 }) })
  },
  'write-order': (one) => {
    one.answer(set, 5, { err: 0 }, { invoked: 1, returned: 2 })
    one.answer(set, 4, { err: 0 }, { invoked: 3, returned: 4 })
  },
  'at-most-once': (one) => void one.transactions.push(put(4, 10, '/w/a', 1), put(5, 10, '/w/a', 2)),
  'session-order': (one) => {
    one.answer(get, 5, { err: 0 })
    one.answer(get, 4, { err: 0 })
  },
  reads: (one) => void one.answer(get, 3, { err: 0, data: 'z', stat: stat({}) }),
  'read-only': (one) =>
    void Object.assign(one.answer(set, 3, { err: 0, stat: stat({ mzxid: 3 }) }), { isReadOnly: true }),
  freshness: (one) => {
    one.answer(set, 4, { err: 0 }, { invoked: 1, returned: 2 })
    one.answer(get, 3, { err: 0 }, { invoked: 1003 })
    return { maxStalenessMs: 1000 }
  },
  syncs: (one) => {
    one.answer(set, 5, { err: 0 }, { invoked: 1, returned: 2 })
    one.answer({ op: 'sync', path: '/w' }, 3, { err: 0 }, { invoked: 3 })
    one.answer(get, 3, { err: 0 }, { invoked: 5 })
  },
  sequences: (one) => {
    const request: Request = { op: 'create', path: '/w/s', data: '', mode: 'sequential' }
    one.answer(request, 4, { err: 0, path: '/w/s0000000002' })
    one.answer(request, 5, { err: 0, path: '/w/s0000000002' })
  },
  watches: (one) => {
    one.transactions.push(put(4, 10, '/w/a', 1))
    one.answer({ ...get, watch: true }, 3, { err: 0 })
    one.answer(get, 4, { err: 0 })
  },
  sessions: (one) => {
    one.answer(get, 3, { err: 0 }, { invoked: 20 })
    one.transactions.push(end(4, []))
  },
  convergence: (one) => {
    one.answer({ op: 'get', path: '/w', watch: false }, 3, { err: 0 }, { client: 'reader' })
    return { readers: new Map([['reader', 's1']]) }
  },
}

describe('checkers', () => {
  it('each has a history that violates it', () => {
    expect(Object.keys(bad).sort()).toEqual(checkers.map(({ name }) => name).sort())
  })

  it('each states its property in one sentence', () => {
    for (const { proves } of checkers) expect(proves).toMatch(/^[A-Z].*\.$/)
  })

  it('sessions accepts a request that a follower answers after the leader has decided to expire a silent session', () => {
    const one = new HistoryBuilder()
    one.answer(get, 3, { err: 0 }, { invoked: 900 })
    one.answer(get, 3, { err: 0 }, { invoked: 2300 })
    one.transactions.push(end(200, []))
    expect(one.violationsOf('sessions')).toEqual([])
    one.answer(get, 3, { err: 0 }, { invoked: 1900 })
    expect(one.violationsOf('sessions')).toEqual([
      expect.stringContaining('had been answered a request of 1900 ms'),
    ])
  })

  it('watches accepts a missing notification of a node that the session may not read', () => {
    const one = new HistoryBuilder()
    one.answer({ op: 'exists', path: '/w/a', watch: true }, 3, { err: 0 })
    one.answer({ op: 'addWatch', path: '/w', recursive: true }, 3, { err: 0 })
    one.transactions.push(setAcl(4, '/w/a'), put(5, 9, '/w/a', 1))
    one.answer({ op: 'exists', path: '/w', watch: false }, 5, { err: 0 })
    expect(one.violationsOf('watches')).toEqual([])
  })

  it.each(checkers.map(({ name }) => name))('%s accepts a valid history', (name) => {
    const one = new HistoryBuilder()
    one.transactions.push(put(4, 10, '/w/a', 1))
    one.answer(set, 4, { err: 0, stat: stat({ mzxid: 4, version: 1 }) })
    one.answer(get, 4, { err: 0, data: 'y', stat: stat({ mzxid: 4, version: 1 }) })
    expect(one.violationsOf(name)).toEqual([])
  })

  it('freshness accepts a read within the staleness bound', () => {
    const one = new HistoryBuilder()
    one.answer(set, 4, { err: 0 }, { invoked: 1, returned: 2 })
    one.answer(get, 3, { err: 0 }, { invoked: 1001 })
    expect(one.violationsOf('freshness', { maxStalenessMs: 1000 })).toEqual([])
  })

  it.each(Object.entries(bad))('%s reports its violation', (name, spoil) => {
    const one = new HistoryBuilder()
    const more = spoil(one) ?? {}
    expect(one.violationsOf(name, more).length).toBeGreaterThan(0)
  })

  it.each([
    [
      'a gap in the history',
      'agreement',
      (one: HistoryBuilder) => void one.transactions.push(put(6, 10, '/w/a', 1)),
      'goes from 0x3 to 0x6',
    ],
    [
      'an ephemeral node that outlives its session',
      'transactions',
      (one: HistoryBuilder) => void one.transactions.push(make(4, 10, '/w/e', 2, true), end(5, [])),
      'when it owns [/w/e]',
    ],
    [
      'a skipped request of a pipeline',
      'at-most-once',
      (one: HistoryBuilder) => {
        for (const xid of [10, 11]) one.send(set, { xid }).outcome = 'unknown'
        one.transactions.push(put(4, 11, '/w/a', 1))
      },
      'which was sent before it, was not',
    ],
    [
      'a persistent watch that misses an event',
      'watches',
      (one: HistoryBuilder) => {
        one.answer({ op: 'addWatch', path: '/w', recursive: true }, 3, { err: 0 })
        one.transactions.push(put(4, 10, '/w/a', 1), put(5, 11, '/w/a', 2))
        one.history.events.push(notice(EventType.NodeDataChanged, '/w/a'))
        one.answer(get, 5, { err: 0 })
      },
      'before its persistent watch reported event 3 of /w/a at 0x5',
    ],
    [
      'a persistent watch that reports an event twice',
      'watches',
      (one: HistoryBuilder) => {
        one.answer({ op: 'addWatch', path: '/w/a', recursive: false }, 3, { err: 0 })
        one.transactions.push(put(4, 10, '/w/a', 1))
        for (let i = 0; i < 2; i++) one.history.events.push(notice(EventType.NodeDataChanged, '/w/a'))
      },
      'when nothing was next',
    ],
    [
      'a removal of missing watches that succeeds',
      'watches',
      (one: HistoryBuilder) =>
        void one.answer({ op: 'removeWatches', watches: 'any', path: '/w/a' }, 3, { err: 0 }),
      'had none',
    ],
    [
      'a query that misses an existing watch',
      'watches',
      (one: HistoryBuilder) => {
        one.answer({ op: 'addWatch', path: '/w/a', recursive: true }, 3, { err: 0 })
        one.answer({ op: 'checkWatches', watches: 'persistent', path: '/w/a' }, 3, { err: -121 })
        one.answer({ op: 'checkWatches', watches: 'recursive', path: '/w/a' }, 3, { err: -121 })
      },
      'queried recursive watches of /w/a, was answered that it had none, and had some',
    ],
    [
      'a multiRead that mixes states',
      'reads',
      (one: HistoryBuilder) => {
        const parts = [
          { op: 'get', path: '/w/a' },
          { op: 'children', path: '/w' },
        ] as const
        const operation = one.send({ op: 'multiRead', parts })
        const answers = [
          { err: 0, data: 'x', stat: stat({}) },
          { err: 0, children: [] },
        ]
        one.history.complete(operation, 20, 3, { err: 0 }, answers)
      },
      'part 1 shows the children [] instead of [a]',
    ],
    [
      'a child that is listed twice',
      'reads',
      (one: HistoryBuilder) => {
        one.transactions.push(make(4, 2, '/w/b', 2))
        one.answer({ op: 'children', path: '/w', watch: false }, 4, { err: 0, children: ['a', 'a'] })
      },
      'shows the children [a,a] instead of [a,b]',
    ],
    [
      'a count of znodes that includes one that is gone',
      'reads',
      (one: HistoryBuilder) => {
        one.transactions.push(remove(4, '/w/a'))
        for (const zxid of [4, 3]) one.answer({ op: 'count', path: '/w' }, zxid, { err: 0, count: 1 })
      },
      'at 0x4, 10.0 to 20.0 ms) counts 1 nodes instead of 0',
    ],
    [
      'ephemeral znodes that are gone',
      'reads',
      (one: HistoryBuilder) => {
        one.transactions.push(make(4, 2, '/w/e', 2, true), remove(5, '/w/e'))
        for (const zxid of [5, 4])
          one.answer({ op: 'ephemerals', path: '/w' }, zxid, { err: 0, children: ['/w/e'] })
      },
      'at 0x5, 10.0 to 20.0 ms) shows the ephemeral nodes [/w/e] instead of []',
    ],
    [
      'an identity that was not authenticated',
      'reads',
      (one: HistoryBuilder) =>
        void one.answer({ op: 'whoAmI' }, 3, { err: 0, identities: ['ip:1.2.3.4', 'digest:ann'] }),
      'is taken for "digest:ann" instead of ""',
    ],
    [
      'a wrong quota usage',
      'reads',
      (one: HistoryBuilder) => {
        one.transactions.push(make(4, 2, QUOTA_PATH, 2))
        for (const [at, [path]] of QUOTA_NODES.entries()) one.transactions.push(make(5 + at, 3 + at, path, 1))
        const seen = { err: 0, data: 'count=2,bytes=1', stat: stat({}) }
        one.answer({ op: 'get', path: QUOTA_STATS, watch: false }, 8, seen)
      },
      'shows the use "count=2,bytes=1" instead of "count=1,bytes=1"',
    ],
    [
      'a refusal within the quota',
      'results',
      (one: HistoryBuilder) => {
        one.transactions.push(make(4, 2, QUOTA_PATH, 2), logged(5, 10, { type: OpCode.error, err: -125 }))
        one.answer({ op: 'create', path: `${QUOTA_PATH}/1`, data: 'x', mode: 'persistent' }, 5, { err: -125 })
      },
      'is refused, although it is within the quota',
    ],
    [
      'a write beyond the quota',
      'results',
      (one: HistoryBuilder) => {
        one.transactions.push(make(4, 2, QUOTA_PATH, 2))
        const [path, data] = [`${QUOTA_PATH}/1`, 'x'.repeat(MAX_BYTES + 1)]
        one.transactions.push(make(5, 10, path, 1))
        one.answer({ op: 'create', path, data, mode: 'persistent' }, 5, { err: 0, path })
      },
      'exceeds the quota and is applied',
    ],
    [
      'an ephemeral node of a local session',
      'transactions',
      (one: HistoryBuilder) => {
        one.transactions.shift()
        one.transactions.push(make(4, 2, '/w/e', 2, true))
        return { committed: committedHistoryOf(one.transactions, true) }
      },
      'creates /w/e for session 100, which was never created',
    ],
    [
      'a write that an access list forbids',
      'results',
      (one: HistoryBuilder) => {
        one.transactions.push(setAcl(4, '/w/a'), put(5, 10, '/w/a', 1))
        one.answer(set, 5, { err: 0, stat: stat({ mzxid: 5, version: 1 }) })
      },
      'expected NOAUTH',
    ],
    [
      'a read that an access list forbids',
      'reads',
      (one: HistoryBuilder) => {
        one.transactions.push(setAcl(4, '/w/a'))
        one.answer(get, 4, { err: 0, data: 'x', stat: stat({ aversion: 1 }) })
      },
      'must not read',
    ],
    [
      'password digests shown to other users',
      'reads',
      (one: HistoryBuilder) => {
        one.transactions.push(setAcl(4, '/w/a', 'readable'))
        const acl = storedAcl('readable', 'ann')!
        one.answer({ op: 'getAcl', path: '/w/a' }, 4, { err: 0, acl, stat: stat({ aversion: 1 }) })
      },
      'instead of [1 world:anyone,31 digest:ann:x]',
    ],
    [
      'a TTL node deleted early',
      'transactions',
      (one: HistoryBuilder) =>
        void one.transactions.push(
          logged(4, 5, {
            type: OpCode.createTTL,
            path: '/w/l',
            data: null,
            acl: OPEN_ACL_UNSAFE,
            parentCVersion: 2,
            ttl: 700,
          }),
          logged(5, 0, { type: OpCode.deleteContainer, path: '/w/l' }, 0n),
        ),
      'deletes /w/l 10 ms after it was written, with a time to live of 700 ms',
    ],
    ['a session that never ends', 'sessions', () => ({ silentSessions: new Set([session]) }), 'still exists'],
    [
      'a session that its client learns to be over before its timeout',
      'sessions',
      (one: HistoryBuilder) => {
        one.answer(get, 3, { err: 0 }, { invoked: 20 })
        one.transactions.push(end(200, []))
        one.history.events.push({ kind: 'ended', client: 'c', session, server: 's1', at: 900 })
        return { maxClockErrorMs: undefined }
      },
      'was over at 900 ms, and had been answered a request of 20 ms',
    ],
    [
      'a reconfiguration that replaces another configuration than it should',
      'results',
      (one: HistoryBuilder) => {
        const reconfig = { op: 'reconfig', joining: '', leaving: '2' } as const
        one.answer({ ...reconfig, from: 7 }, 4, { err: 0 })
      },
      'replaced the configuration 0x0, expected 0x7 to be in force',
    ],
    [
      'a notification without a watch',
      'watches',
      (one: HistoryBuilder) => {
        one.answer(get, 3, { err: 0 })
        one.history.events.push(notice(EventType.NodeDataChanged, '/w/a'))
      },
      'did not watch',
    ],
    [
      'a notification for an unreadable node',
      'watches',
      (one: HistoryBuilder) => {
        one.answer({ op: 'exists', path: '/w/a', watch: true }, 3, { err: 0 })
        one.transactions.push(setAcl(4, '/w/a'), put(5, 9, '/w/a', 1))
        one.history.events.push(notice(EventType.NodeDataChanged, '/w/a'))
      },
      'no such change came next',
    ],
    [
      'a read-only server that answers a sync',
      'read-only',
      (one: HistoryBuilder) =>
        void Object.assign(one.answer({ op: 'sync', path: '/w' }, 3, { err: 0 }), { isReadOnly: true }),
      'by a server without a quorum',
    ],
    [
      'a refusal by a server that is not read-only',
      'read-only',
      (one: HistoryBuilder) => void one.answer(set, 3, { err: ErrorCode.NOTREADONLY }),
      'is refused as by a read-only server',
    ],
    [
      'a server that stays read-only',
      'read-only',
      (one: HistoryBuilder) =>
        void one.history.events.push({ ...one.attached(), at: 16_000, isReadOnly: true }),
      's1 is read-only at 16000.0 ms',
    ],
    [
      'a server that accepts a client with a later zxid',
      'session-order',
      (one: HistoryBuilder) => {
        one.history.events.push({ ...one.attached(), seen: 3 })
        one.answer(get, 2, { err: 0 })
      },
      'goes back behind 0x3',
    ],
    [
      'a stale read at an isolated server',
      'freshness',
      (one) => {
        one.answer(set, 4, { err: 0 }, { invoked: 1, returned: 2 })
        one.answer(get, 3, { err: 0 }, { invoked: 3 })
        return { maxStalenessMs: 0 }
      },
      'shows 0x3, and 0x4 was answered',
    ],
    [
      'a write of unknown outcome that takes effect before what was acknowledged earlier',
      'write-order',
      (one: HistoryBuilder) => {
        one.transactions.push(put(4, 11, '/w/a', 1), put(5, 10, '/w/a', 2))
        one.answer(set, 5, { err: 0 }, { xid: 10, invoked: 1, returned: 2 })
        one.send(set, { xid: 11, invoked: 3 }).outcome = 'unknown'
      },
      'unknown, sent at 3.0 ms) began after',
    ],
    [
      'a Stat in the reply to a write that differs from that of the znode',
      'results',
      (one: HistoryBuilder) => {
        one.transactions.push(put(4, 10, '/w/a', 1))
        one.answer(set, 4, { err: 0, stat: stat({ mzxid: 4, version: 1, children: 2 }) })
      },
      'shows children 2 instead of 0',
    ],
    [
      'a time of change that is not that of the transaction',
      'reads',
      (one: HistoryBuilder) =>
        void one.answer(get, 3, { err: 0, data: 'x', stat: { ...stat({}), mtime: 1 } }),
      'shows mtime 1 instead of 1700000001030',
    ],
    [
      'a write that is acknowledged without a zxid and is lost',
      'acknowledged-writes',
      (one: HistoryBuilder) => void one.answer(set, 0, { err: 0, stat: stat({ mzxid: 3 }) }),
      'was acknowledged without a zxid',
    ],
    [
      'a write that is refused as malformed',
      'acknowledged-writes',
      (one: HistoryBuilder) => void one.answer(set, 3, { err: ErrorCode.MARSHALLINGERROR }),
      'is refused with MARSHALLINGERROR, which nothing in the run explains',
    ],
    [
      'a write that is refused as if the disk were full',
      'acknowledged-writes',
      (one: HistoryBuilder) => void one.answer(set, 3, { err: ErrorCode.SYSTEMERROR }),
      'is refused with SYSTEMERROR, which nothing in the run explains',
    ],
    [
      'a read that is refused for no reason',
      'reads',
      (one: HistoryBuilder) => void one.answer(get, 3, { err: ErrorCode.SYSTEMERROR }),
      'is refused with SYSTEMERROR',
    ],
    [
      'a read that names no state',
      'reads',
      (one: HistoryBuilder) => void one.answer({ ...get, path: '/w/none' }, 0, { err: ErrorCode.NONODE }),
      'names no zxid',
    ],
    [
      'a read that is answered in a session that has ended',
      'sessions',
      (one: HistoryBuilder) => {
        one.transactions.push(end(4, []), begin(5, 0x200n))
        one.answer(get, 5, { err: 0, data: 'x', stat: stat({}) })
      },
      'is answered at 0x5, and its session ended at 0x4',
    ],
    [
      'a session that no client uses and that never ends',
      'sessions',
      (one: HistoryBuilder) => {
        one.transactions.push(begin(4, 0x200n), put(5, 10, '/w/a', 1))
        one.answer(set, 5, { err: 0, stat: stat({ mzxid: 5, version: 1 }) }, { returned: 20 })
        return { healedAt: 30 }
      },
      'Session 200 still exists although no client has ever been attached to it',
    ],
    [
      'a session that ends while its client sends pings',
      'sessions',
      (one: HistoryBuilder) => {
        one.history.pings.push({ session, sent: 1500 })
        one.transactions.push(end(200, []))
      },
      'had been answered a request of 1500 ms',
    ],
    [
      'two leaders of one epoch',
      'epochs',
      () => ({ quorum: { committed: new Set<number>(), violations: ['s1 and s2 lead epoch 1'] } }),
      'lead epoch 1',
    ],
  ] as [string, string, (one: HistoryBuilder) => Partial<Evidence> | void, string][])(
    'report %s',
    (_, name, spoil, says) => {
      const one = new HistoryBuilder()
      const more = spoil(one) ?? {}
      expect(one.violationsOf(name, more).join()).toContain(says)
    },
  )
})
