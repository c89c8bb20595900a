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

class QuotaFixture {
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

  /** Prepares a request without applying it. */
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
  it('have ten characters, sign included', () => {
    expect([0, 42, 2_147_483_647, -1, -2_147_483_648].map(sequenceNumber)).toEqual([
      '0000000000',
      '0000000042',
      '2147483647',
      '-000000001',
      '-2147483648',
    ])
  })

  it('stay at the highest number, so that the same name is rejected', () => {
    const fixture = new QuotaFixture()
    fixture.create('/p')
    const parent = fixture.tree.find('/p')
    fixture.tree.store.columns(parent).cversion[fixture.tree.store.slot(parent)] = 2_147_483_646
    const name = (n: string): object => ({ path: `/p/s${n}` })
    expect(fixture.create('/p/s', null, CreateMode.PERSISTENT_SEQUENTIAL)).toMatchObject(name('2147483646'))
    expect(fixture.create('/p/s', null, CreateMode.PERSISTENT_SEQUENTIAL)).toMatchObject(name('2147483647'))
    expect(fixture.create('/p/s', null, CreateMode.PERSISTENT_SEQUENTIAL)).toEqual(
      error(ErrorCode.NODEEXISTS),
    )
    expect(fixture.create('/p/t', null, CreateMode.PERSISTENT_SEQUENTIAL)).toMatchObject({
      path: '/p/t2147483647',
    })
  })

  it('count all children created, pending ones included', () => {
    const fixture = new QuotaFixture()
    fixture.create('/p')
    fixture.create('/p/plain')
    const ask = (): Txn | number =>
      fixture.prepare(OpCode.create, (w) =>
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
  function limited(limits: string, enforce = true): QuotaFixture {
    const fixture = new QuotaFixture(enforce)
    fixture.create('/q', '12345')
    fixture.create('/q/old', '678')
    for (const path of [
      '/zookeeper/quota/q',
      '/zookeeper/quota/q/zookeeper_limits',
      '/zookeeper/quota/q/zookeeper_stats',
    ]) {
      fixture.create(path, path.endsWith('limits') ? limits : '')
    }
    return fixture
  }

  it('count existing nodes, creations and deletions', () => {
    const fixture = limited('count=-1,bytes=-1')
    const stats = '/zookeeper/quota/q/zookeeper_stats'
    expect(fixture.dataOf(stats)).toBe('count=2,bytes=8')
    fixture.create('/q/new', '12')
    fixture.set('/q/new', '1')
    expect(fixture.dataOf(stats)).toBe('count=3,bytes=9')
    fixture.create('/elsewhere', '123')
    expect(fixture.dataOf(stats)).toBe('count=3,bytes=9')
  })

  it('reject writes above a hard limit of nodes or bytes when they are enforced', () => {
    const fixture = limited('count=-1,bytes=-1;byteHardLimit=12,countHardLimit=3')
    expect(fixture.create('/q/a', '1234')).toMatchObject({ path: '/q/a' })
    expect(fixture.create('/q/b')).toEqual(error(ErrorCode.QUOTAEXCEEDED))
    expect(fixture.set('/q/a', '12345')).toEqual(error(ErrorCode.QUOTAEXCEEDED))
    expect(fixture.set('/q/a', '123')).toMatchObject({ type: OpCode.setData })
  })

  it('report writes above a soft limit, or without enforcement, and accept them', () => {
    const soft = limited('count=1,bytes=1')
    expect(soft.create('/q/a', '1234')).toMatchObject({ path: '/q/a' })
    expect(soft.breaches).toEqual(['/q soft nodes 3 of 1'])
    expect(soft.set('/q/a', '12345')).toMatchObject({ type: OpCode.setData })
    expect(soft.breaches.slice(1)).toEqual(['/q soft bytes 13 of 1'])
    const open = limited('count=-1,bytes=-1;byteHardLimit=1,countHardLimit=1', false)
    expect(open.create('/q/a', '1')).toMatchObject({ path: '/q/a' })
    expect(open.breaches).toEqual(['/q hard nodes 3 of 1'])
  })

  it('that cannot be parsed reject writes below them, and no others', () => {
    const fixture = limited('count=many')
    expect(fixture.create('/q/a')).toEqual(error(ErrorCode.MARSHALLINGERROR))
    expect(fixture.create('/other')).toMatchObject({ path: '/other' })
  })
})

describe('the preparer', () => {
  it('uses no zxid for a request that cannot be decoded, except a multi', () => {
    const fixture = new QuotaFixture()
    for (const type of [
      OpCode.create,
      OpCode.create2,
      OpCode.createTTL,
      OpCode.delete,
      OpCode.setData,
      OpCode.setACL,
      OpCode.reconfig,
    ]) {
      expect(fixture.prepare(type, (w) => w.byte(1))).toBe(ErrorCode.MARSHALLINGERROR)
    }
    expect(fixture.prepare(OpCode.multi, (w) => w.byte(1))).toEqual(error(ErrorCode.MARSHALLINGERROR))
  })

  it('uses a zxid for the failed request of a closed session', () => {
    const fixture = new QuotaFixture()
    fixture.open = false
    expect(fixture.create('/a')).toEqual(error(ErrorCode.SESSIONEXPIRED))
  })

  it('rejects a reconfiguration of a standalone server', () => {
    const body = (w: Writer): void => {
      for (const list of [null, null, null]) w.string(list)
      w.long(-1n)
    }
    expect(new QuotaFixture().prepare(OpCode.reconfig, body)).toEqual(error(ErrorCode.RECONFIGDISABLED))
  })

  it('copies the data of a request, whose bytes change later', () => {
    const fixture = new QuotaFixture()
    const w = new Writer()
    writeCreateRequest(w, { path: '/a', data: text('kept'), acl: OPEN_ACL_UNSAFE, flags: 0 })
    const bytes = w.take()
    const prepared = fixture.preparer.prepare(
      { sessionId: 5n, type: OpCode.create, identities: [] },
      new Reader(bytes),
      1,
      1,
    )
    bytes.fill(0)
    expect(prepared).toMatchObject({ txn: { path: '/a', data: text('kept') } })
  })

  it('copies the data of the parts of a multi and of a setData', () => {
    const fixture = new QuotaFixture()
    fixture.create('/a')
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
      const prepared = fixture.preparer.prepare(request, new Reader(bytes), at + 2, 1)
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

  it('validates against pending changes until they are reset', () => {
    const fixture = new QuotaFixture()
    const create = (): Txn | number =>
      fixture.prepare(OpCode.create, (w) =>
        writeCreateRequest(w, { path: '/a', data: null, acl: OPEN_ACL_UNSAFE, flags: 0 }),
      )
    expect(create()).toMatchObject({ path: '/a' })
    expect(create()).toEqual(error(ErrorCode.NODEEXISTS))
    fixture.preparer.reset()
    expect(create()).toMatchObject({ path: '/a' })
  })
})
