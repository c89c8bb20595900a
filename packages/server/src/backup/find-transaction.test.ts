import { OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createOf } from '../core/testing/create-of.ts'
import type { SubTxn, Txn } from '../core/types.ts'
import { payloadOf } from '../persistence/testing/log-fixture.ts'
import { Catalog } from './catalog.ts'
import { lastBefore, lastBeforeChange, parseChange } from './find-transaction.ts'
import { encodeLog } from './log-stream.ts'
import type { SnapshotManifest } from './manifest.ts'
import { logBetween, snapshotAt, storeWith } from './testing/manifests.ts'

const MINUTE = 60_000

/** A transaction, at a time in milliseconds. */
type Step = readonly [zxid: number, time: number, txn: Txn]

const remove = (path: string): SubTxn => ({ type: OpCode.delete, path })
const set = (path: string): SubTxn => ({ type: OpCode.setData, path, data: null, version: 1 })
const multi = (...txns: readonly SubTxn[]): Txn => ({ type: OpCode.multi, txns })
const endSession = (...paths2Delete: readonly string[]): Txn => ({ type: OpCode.closeSession, paths2Delete })

/** Returns a target with parts of the log, each with the time at which it was written. */
async function targetOf(
  parts: readonly (readonly Step[])[],
  { times = [], snapshots = [] }: { times?: readonly number[]; snapshots?: readonly SnapshotManifest[] } = {},
) {
  const { store, write, put } = await storeWith(...snapshots)
  for (const [index, steps] of parts.entries()) {
    const [first, last] = [steps[0]!, steps.at(-1)!]
    const log = logBetween(first[0] - 1, last[0], {
      first: first[0],
      firstTime: first[1],
      lastTime: last[1],
      time: times[index] ?? last[1],
    })
    async function* txns() {
      for (const [zxid, time, txn] of steps)
        yield {
          zxid,
          payload: payloadOf({ header: { sessionId: 7n, cxid: 1, zxid, time }, txn, digest: undefined }),
        }
    }
    await store.target.write(log.piece.name, encodeLog(txns()))
    await put(log)
  }
  return { store, write, catalog: await Catalog.read(store) }
}

const writes = (...steps: readonly (readonly [zxid: number, time: number])[]): Step[] =>
  steps.map(([zxid, time]) => [zxid, time, set('/n')])

describe('the last transaction before a time', () => {
  it('is the last one at or before it, of the part of the log that the time is in', async () => {
    const parts = [writes([11, 1000], [12, 2000], [13, 2000], [14, 3000]), writes([15, 4000], [16, 5000])]
    const { store, catalog } = await targetOf(parts)
    const found = await Promise.all(
      [1000, 1999, 2000, 2999, 3000, 3999, 4000, 4999, 5000].map((time) => lastBefore(store, catalog, time)),
    )
    expect(found).toEqual([11, 11, 13, 13, 14, 14, 15, 15, 16])
    // The clock of the leader was set back: the time has passed once before.
    const back = await targetOf([writes([11, 1000], [12, 3000], [13, 2000], [14, 4000])])
    expect(await lastBefore(back.store, back.catalog, 2500)).toBe(11)
  })

  it('is refused before the log, and after the last backup, with the times that are covered', async () => {
    const { store, catalog } = await targetOf([writes([11, 1000])], { times: [7000] })
    await expect(lastBefore(store, catalog, 999)).rejects.toThrow(
      'Expected a time from 1970-01-01T00:00:01.000Z on, which the log in the target covers, got 1970-01-01T00:00:00.999Z.',
    )
    expect(await lastBefore(store, catalog, 7000)).toBe(11)
    await expect(lastBefore(store, catalog, 7001)).rejects.toThrow(
      'Expected a time up to 1970-01-01T00:00:07.000Z, when the last backup was made, got 1970-01-01T00:00:07.001Z.',
    )
    const later = await targetOf([writes([11, 1000])], {
      times: [7000],
      snapshots: [snapshotAt(11, { time: 9000 })],
    })
    expect(await lastBefore(later.store, later.catalog, 9000)).toBe(11)
    const empty = await targetOf([])
    await expect(lastBefore(empty.store, empty.catalog, 1000)).rejects.toThrow('Expected a time from now on')
  })

  it('is that of a part up to when a backup ended with it, where the log after it is missing', async () => {
    const parts = [writes([11, 1000], [12, 2000]), writes([21, 8000], [22, 9000])]
    const until = async (
      time: number,
      snapshots: readonly SnapshotManifest[] = [snapshotAt(20, { time: 7500 })],
    ) => {
      const { store, catalog } = await targetOf(parts, { times: [3000, 9500], snapshots })
      return lastBefore(store, catalog, time)
    }
    expect(await until(3000)).toBe(12)
    await expect(until(3001)).rejects.toThrow(
      'got 1970-01-01T00:00:03.001Z: the log after 1970-01-01T00:00:03.000Z is in no backup, or retention has removed it. Name the moment before with --zxid 0xc, or that of 1970-01-01T00:00:07.500Z with --zxid 0x14.',
    )
    // A snapshot ends there too, and was made later.
    const twice = [snapshotAt(12, { time: 5000 }), snapshotAt(20, { time: 7500 })]
    expect(await until(5000, twice)).toBe(12)
    await expect(until(5001, twice)).rejects.toThrow('the log after 1970-01-01T00:00:05.000Z')
    // The log goes on after the snapshot.
    expect(await until(7500)).toBe(20)
    expect(await until(7999)).toBe(20)
    // Without a snapshot there is nothing to name beside the moment before.
    await expect(until(7000, [])).rejects.toThrow('Name the moment before with --zxid 0xc.')
    // The log goes on, so a snapshot of a member whose clock is behind says nothing.
    const goesOn = await targetOf([writes([11, 1000], [12, 2000]), writes([13, 8000], [14, 8000])], {
      snapshots: [snapshotAt(13, { time: 3000 })],
    })
    expect(await lastBefore(goesOn.store, goesOn.catalog, 5000)).toBe(12)
    // Nothing has come after the part by the last backup, whatever was made after it.
    const end = await targetOf(parts.slice(0, 1), {
      times: [3000],
      snapshots: [snapshotAt(11, { time: 9000 }), snapshotAt(12, { time: 2500 })],
    })
    expect(await lastBefore(end.store, end.catalog, 8000)).toBe(12)
    // A snapshot came after it, and no log.
    const noLog = await targetOf(parts.slice(0, 1), {
      times: [3000],
      snapshots: [snapshotAt(20, { time: 7500 })],
    })
    await expect(lastBefore(noLog.store, noLog.catalog, 5000)).rejects.toThrow('is in no backup')
    expect(await lastBefore(noLog.store, noLog.catalog, 7500)).toBe(20)
    // After a snapshot whose log is missing too, its own moment alone can be named.
    const alone = [snapshotAt(15, { time: 6000 }), snapshotAt(20, { time: 7500 })]
    expect(await until(6000, alone)).toBe(15)
    await expect(until(6001, alone)).rejects.toThrow(
      'Name the moment before with --zxid 0xf, or that of 1970-01-01T00:00:07.500Z with --zxid 0x14.',
    )
  })
})

describe('a change', () => {
  it.each(['create /a', 'set  /a b ', ' delete /'])('is read from a text: %j', (text) => {
    const [, operation, path] = /^ *(\w+) +(.*?) *$/.exec(text)!
    expect(parseChange(text)).toEqual({ operation, path })
  })

  it.each(['', 'create', 'create a', 'remove /a', 'xcreate /a', 'create/a', 'delete /a\nb'])(
    'is refused: %j',
    (text) => {
      expect(() => parseChange(text)).toThrow(`got ${JSON.stringify(text)}.`)
    },
  )

  const KINDS = ['create', 'set', 'delete']
  const acl = { acl: createOf('/').acl, parentCVersion: 1, data: null }
  it.each<readonly [change: string, txn: Txn]>([
    ['create /a', createOf('/a')],
    ['create /a', { ...acl, type: OpCode.createContainer, path: '/a' }],
    ['create /a', { ...acl, type: OpCode.createTTL, path: '/a', ttl: 5 }],
    ['set /a', set('/a')],
    ['delete /a', remove('/a')],
    ['delete /a', endSession('/x', '/a')],
    ['delete /a', multi(set('/b'), remove('/a'))],
  ])('is found in each kind of transaction that makes it: %s', async (text, txn) => {
    const others: Step[] = [
      [13, 1003, multi(remove('/a'), { type: OpCode.error, err: -2 })],
      [14, 1004, { type: OpCode.setACL, path: '/a', acl: [], version: 1 }],
      [15, 1005, { type: OpCode.createSession, timeOut: 5 }],
      [16, 1006, { type: OpCode.error, err: -101 }],
      [17, 1007, multi({ type: OpCode.check, path: '/a', version: 1 })],
      [18, 1008, set('/a/b')],
    ]
    const ofOtherKinds = [createOf('/a'), set('/a'), remove('/a')].filter(
      (_, kind) => !text.startsWith(KINDS[kind]!),
    )
    for (const [index, other] of ofOtherKinds.entries()) others.push([19 + index, 1009 + index, other])
    const { store, catalog } = await targetOf([[[11, 1000, txn]], [[12, 1001, txn], ...others]])
    expect(await lastBeforeChange(store, catalog, parseChange(text))).toEqual({
      before: 11,
      change: 12,
      time: 1001,
    })
  })

  it('that is none is refused with what the log covers', async () => {
    const { store, catalog } = await targetOf([writes([11, 1000]), writes([12, 2000]), writes([13, 2000])])
    await expect(lastBeforeChange(store, catalog, parseChange('set /x'))).rejects.toThrow(
      'Expected set /x in the log of the target, which covers 0xb to 0xd, got no such change.',
    )
    const empty = await targetOf([])
    await expect(lastBeforeChange(empty.store, empty.catalog, parseChange('set /x'))).rejects.toThrow(
      'covers 0x0 to 0x0',
    )
  })
})

describe('the transaction before a row of deletes', () => {
  /** Returns the transaction before `delete /a`, whose steps are in one part of the log, or in one part each. */
  const before = async (
    steps: readonly (readonly [time: number, txn: Txn])[],
    split: boolean,
  ): Promise<number> => {
    const all = steps.map(([time, txn], index): Step => [11 + index, time, txn])
    const { store, catalog } = await targetOf(split ? all.map((step) => [step]) : [all])
    return (await lastBeforeChange(store, catalog, parseChange('delete /a'))).before
  }
  const both = async (...steps: readonly (readonly [time: number, txn: Txn])[]): Promise<number> => {
    const [whole, split] = [await before(steps, false), await before(steps, true)]
    expect(split).toBe(whole)
    return whole
  }
  const last = [10 * MINUTE, remove('/a')] as const

  it('comes before the first delete below the path, up to a minute before the next one', async () => {
    expect(
      await both(
        [1, set('/n')],
        [8 * MINUTE, remove('/a/b/c')],
        [8.5 * MINUTE, set('/n')],
        [9 * MINUTE, multi(remove('/a/b'), remove('/a/d'))],
        [9.5 * MINUTE, endSession('/a/e')],
        last,
      ),
    ).toBe(11)
    expect(
      await both([1, set('/n')], [9 * MINUTE - 1, remove('/a/b')], [9.5 * MINUTE, set('/n')], last),
    ).toBe(13)
    expect(
      await both(
        [8 * MINUTE - 1, remove('/a/b')],
        [9 * MINUTE, remove('/a/c')],
        [9 * MINUTE, set('/n')],
        last,
      ),
    ).toBe(11)
  })

  it('does not reach beyond another delete', async () => {
    for (const other of [
      remove('/ab'),
      remove('/b'),
      endSession('/b'),
      multi(remove('/a/x'), remove('/b')),
      multi(remove('/a/x'), set('/a/y')),
    ])
      expect(
        await both([9 * MINUTE, remove('/a/b')], [9 * MINUTE, other], [9 * MINUTE, remove('/a/c')], last),
      ).toBe(12)
    expect(await both([9 * MINUTE, remove('/a/b')], [9 * MINUTE, remove('/b')], last)).toBe(12)
    // The end of a session that had no nodes deletes nothing.
    expect(await both([9 * MINUTE, remove('/a/b')], [9 * MINUTE, endSession()], last)).toBe(10)
    expect(await both([9 * MINUTE, set('/n')], [9 * MINUTE, endSession()], last)).toBe(12)
  })

  it('is not looked for before another change than a delete', async () => {
    const steps: Step[] = [
      [11, 1000, remove('/a/b')],
      [12, 1000, set('/a')],
    ]
    for (const parts of [[steps], steps.map((step) => [step])]) {
      const { store, catalog } = await targetOf(parts)
      expect((await lastBeforeChange(store, catalog, parseChange('set /a'))).before).toBe(11)
    }
  })

  it('of a tree that was deleted twice is that of the last time', async () => {
    expect(
      await both(
        [MINUTE, remove('/a/b')],
        [MINUTE, remove('/a')],
        [2 * MINUTE, createOf('/a')],
        [9 * MINUTE, createOf('/a/b')],
        [9.5 * MINUTE, remove('/a/b')],
        last,
      ),
    ).toBe(14)
  })

  it('is found in parts of the log that overlap', async () => {
    const all: Step[] = [
      [11, 9 * MINUTE, set('/n')],
      [12, 9 * MINUTE, remove('/a/b')],
      [13, 9 * MINUTE, remove('/a/c')],
      [14, 9 * MINUTE, remove('/a')],
    ]
    for (const parts of [
      [all.slice(0, 3), all.slice(1)],
      [all.slice(0, 3), all.slice(2)],
      [all.slice(0, 2), all.slice(1, 3), all.slice(2)],
      // The earlier part has the deletes of the later one too.
      [all, [...all.slice(2), [15, 9 * MINUTE, set('/n')] as Step]],
    ]) {
      const { store, catalog } = await targetOf(parts)
      expect((await lastBeforeChange(store, catalog, parseChange('delete /a'))).before).toBe(11)
    }
  })
})

it('a row of deletes does not go on before log that is missing', async () => {
  const { store, catalog } = await targetOf([
    [[11, 9 * MINUTE, remove('/a/b')]],
    [[15, 9 * MINUTE, remove('/a')]],
  ])
  expect((await lastBeforeChange(store, catalog, parseChange('delete /a'))).before).toBe(14)
})

it('a part of the log that is missing is named', async () => {
  const { store, catalog } = await targetOf([writes([11, 1000], [12, 3000])])
  await store.target.remove(catalog.logs[0]!.piece.name)
  await expect(lastBefore(store, catalog, 2000)).rejects.toThrow('log/10-12 is missing')
})
