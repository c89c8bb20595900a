import {
  CreateMode,
  ErrorCode,
  OPEN_ACL_UNSAFE,
  OpCode,
  Reader,
  writeCreateRequest,
  writeMultiHeader,
  Writer,
  writeSetDataRequest,
} from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { Tree } from '../tree/index.ts'
import type { Txn } from '../types.ts'
import { Preparer } from './index.ts'
import { sequenceNumber } from './sequence.ts'

class Bench {
  readonly tree = new Tree({ extendedTypes: true, digest: true })
  readonly preparer: Preparer
  open = true
  readonly breaches: string[] = []
  #zxid = 0

  constructor(enforceQuota = false) {
    this.preparer = new Preparer({
      tree: this.tree,
      acls: new AclRules({ skipACL: false }),
      sessions: { check: () => (this.open ? 0 : ErrorCode.SESSIONEXPIRED) },
      enforceQuota,
      reconfigEnabled: false,
      onQuotaExceeded: (subject, { what, isHard, limit, use }) =>
        this.breaches.push(`${subject} ${isHard ? 'hard' : 'soft'} ${what} ${use} of ${limit}`),
    })
  }

  /** Prepares a request and does not apply it. */
  prepare(type: number, body: (w: Writer) => void): Txn | number {
    const w = new Writer()
    body(w)
    const prepared = this.preparer.prepare(
      { sessionId: 5n, type, identities: [] },
      new Reader(w.take()),
      ++this.#zxid,
      1,
    )
    return typeof prepared === 'number' ? prepared : prepared.txn
  }

  apply(type: number, body: (w: Writer) => void): Txn | number {
    const txn = this.prepare(type, body)
    if (typeof txn === 'number') return txn
    this.tree.apply({ sessionId: 5n, cxid: 0, zxid: this.#zxid, time: 1 }, txn)
    this.preparer.forgetApplied(this.#zxid)
    return txn
  }

  create(path: string, data: string | null = null, flags: number = CreateMode.PERSISTENT): Txn | number {
    return this.apply(OpCode.create, (w) =>
      writeCreateRequest(w, { path, data: data === null ? null : text(data), acl: OPEN_ACL_UNSAFE, flags }),
    )
  }

  set(path: string, data: string): Txn | number {
    return this.apply(OpCode.setData, (w) => writeSetDataRequest(w, { path, data: text(data), version: -1 }))
  }

  dataOf(path: string): string {
    return new TextDecoder().decode(this.tree.dataOf(this.tree.find(path))!)
  }
}

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const error = (err: number): object => ({ type: OpCode.error, err })

describe('sequence numbers', () => {
  it('have ten digits and more where they need them, the sign included', () => {
    expect([0, 42, 2_147_483_647, -1, -2_147_483_648].map(sequenceNumber)).toEqual([
      '0000000000',
      '0000000042',
      '2147483647',
      '-000000001',
      '-2147483648',
    ])
  })

  it('stay at their end for ever, so that the same name is refused', () => {
    const bench = new Bench()
    bench.create('/p')
    const parent = bench.tree.find('/p')
    bench.tree.store.columns(parent).cversion[bench.tree.store.slot(parent)] = 2_147_483_646
    const name = (n: string): object => ({ path: `/p/s${n}` })
    expect(bench.create('/p/s', null, CreateMode.PERSISTENT_SEQUENTIAL)).toMatchObject(name('2147483646'))
    expect(bench.create('/p/s', null, CreateMode.PERSISTENT_SEQUENTIAL)).toMatchObject(name('2147483647'))
    expect(bench.create('/p/s', null, CreateMode.PERSISTENT_SEQUENTIAL)).toEqual(error(ErrorCode.NODEEXISTS))
    expect(bench.create('/p/t', null, CreateMode.PERSISTENT_SEQUENTIAL)).toMatchObject({
      path: '/p/t2147483647',
    })
  })

  it('count every child, and what is on its way', () => {
    const bench = new Bench()
    bench.create('/p')
    bench.create('/p/plain')
    const ask = (): Txn | number =>
      bench.prepare(OpCode.create, (w) =>
        writeCreateRequest(w, {
          path: '/p/s',
          data: null,
          acl: OPEN_ACL_UNSAFE,
          flags: CreateMode.PERSISTENT_SEQUENTIAL,
        }),
      )
    expect([ask(), ask()]).toMatchObject([{ path: '/p/s0000000001' }, { path: '/p/s0000000002' }])
  })
})

describe('quotas', () => {
  function limited(limits: string, enforce = true): Bench {
    const bench = new Bench(enforce)
    bench.create('/q', '12345')
    bench.create('/q/old', '678')
    for (const path of [
      '/zookeeper/quota/q',
      '/zookeeper/quota/q/zookeeper_limits',
      '/zookeeper/quota/q/zookeeper_stats',
    ]) {
      bench.create(path, path.endsWith('limits') ? limits : '')
    }
    return bench
  }

  it('count what is there and what comes and goes', () => {
    const bench = limited('count=-1,bytes=-1')
    const stats = '/zookeeper/quota/q/zookeeper_stats'
    expect(bench.dataOf(stats)).toBe('count=2,bytes=8')
    bench.create('/q/new', '12')
    bench.set('/q/new', '1')
    expect(bench.dataOf(stats)).toBe('count=3,bytes=9')
    bench.create('/elsewhere', '123')
    expect(bench.dataOf(stats)).toBe('count=3,bytes=9')
  })

  it('refuse above a hard limit of nodes or bytes when they are enforced', () => {
    const bench = limited('count=-1,bytes=-1;byteHardLimit=12,countHardLimit=3')
    expect(bench.create('/q/a', '1234')).toMatchObject({ path: '/q/a' })
    expect(bench.create('/q/b')).toEqual(error(ErrorCode.QUOTAEXCEEDED))
    expect(bench.set('/q/a', '12345')).toEqual(error(ErrorCode.QUOTAEXCEEDED))
    expect(bench.set('/q/a', '123')).toMatchObject({ type: OpCode.setData })
  })

  it('refuse nothing above a soft limit, or when they are not enforced, but tell of it', () => {
    const soft = limited('count=1,bytes=1')
    expect(soft.create('/q/a', '1234')).toMatchObject({ path: '/q/a' })
    expect(soft.breaches).toEqual(['/q soft nodes 3 of 1'])
    expect(soft.set('/q/a', '12345')).toMatchObject({ type: OpCode.setData })
    expect(soft.breaches.slice(1)).toEqual(['/q soft bytes 13 of 1'])
    const open = limited('count=-1,bytes=-1;byteHardLimit=1,countHardLimit=1', false)
    expect(open.create('/q/a', '1')).toMatchObject({ path: '/q/a' })
    expect(open.breaches).toEqual(['/q hard nodes 3 of 1'])
  })

  it('that cannot be read refuse what lies below them, and nothing else', () => {
    const bench = limited('count=many')
    expect(bench.create('/q/a')).toEqual(error(ErrorCode.MARSHALLINGERROR))
    expect(bench.create('/other')).toMatchObject({ path: '/other' })
  })
})

describe('a request', () => {
  it('that cannot be decoded takes no zxid, but a multi does', () => {
    const bench = new Bench()
    for (const type of [
      OpCode.create,
      OpCode.create2,
      OpCode.createTTL,
      OpCode.delete,
      OpCode.setData,
      OpCode.setACL,
      OpCode.reconfig,
    ]) {
      expect(bench.prepare(type, (w) => w.byte(1))).toBe(ErrorCode.MARSHALLINGERROR)
    }
    expect(bench.prepare(OpCode.multi, (w) => w.byte(1))).toEqual(error(ErrorCode.MARSHALLINGERROR))
  })

  it('of a session that is over fails with its zxid', () => {
    const bench = new Bench()
    bench.open = false
    expect(bench.create('/a')).toEqual(error(ErrorCode.SESSIONEXPIRED))
  })

  it('for another membership is refused: there is none to change', () => {
    const body = (w: Writer): void => {
      for (const list of [null, null, null]) w.string(list)
      w.long(-1n)
    }
    expect(new Bench().prepare(OpCode.reconfig, body)).toEqual(error(ErrorCode.RECONFIGDISABLED))
  })

  it('keeps its data when the bytes that it came in change', () => {
    const bench = new Bench()
    const w = new Writer()
    writeCreateRequest(w, { path: '/a', data: text('kept'), acl: OPEN_ACL_UNSAFE, flags: 0 })
    const bytes = w.take()
    const prepared = bench.preparer.prepare(
      { sessionId: 5n, type: OpCode.create, identities: [] },
      new Reader(bytes),
      1,
      1,
    )
    bytes.fill(0)
    expect(prepared).toMatchObject({ txn: { path: '/a', data: text('kept') } })
  })

  it('keeps the data of the parts of a multi just so, and that of a change', () => {
    const bench = new Bench()
    bench.create('/a')
    const w = new Writer()
    writeMultiHeader(w, { type: OpCode.setData, done: false, err: -1 })
    writeSetDataRequest(w, { path: '/a', data: text('kept'), version: -1 })
    writeMultiHeader(w, { type: OpCode.create, done: false, err: -1 })
    writeCreateRequest(w, { path: '/a/b', data: text('too'), acl: OPEN_ACL_UNSAFE, flags: 0 })
    writeMultiHeader(w, { type: -1, done: true, err: -1 })
    const multi = w.take()
    writeSetDataRequest(w, { path: '/a', data: text('also'), version: -1 })
    const change = w.take()
    const [first, second] = [
      { type: OpCode.multi, bytes: multi },
      { type: OpCode.setData, bytes: change },
    ].map(({ type, bytes }, at) => {
      const request = { sessionId: 5n, type, identities: [] }
      const prepared = bench.preparer.prepare(request, new Reader(bytes), at + 2, 1)
      bytes.fill(0)
      return prepared
    })
    expect(first).toMatchObject({
      txn: {
        txns: [
          { path: '/a', data: text('kept') },
          { path: '/a/b', data: text('too') },
        ],
      },
    })
    expect(second).toMatchObject({ txn: { path: '/a', data: text('also') } })
  })

  it('sees what is on its way until that is dropped', () => {
    const bench = new Bench()
    const create = (): Txn | number =>
      bench.prepare(OpCode.create, (w) =>
        writeCreateRequest(w, { path: '/a', data: null, acl: OPEN_ACL_UNSAFE, flags: 0 }),
      )
    expect(create()).toMatchObject({ path: '/a' })
    expect(create()).toEqual(error(ErrorCode.NODEEXISTS))
    bench.preparer.reset()
    expect(create()).toMatchObject({ path: '/a' })
  })
})
