import { makeZxid } from '@zabra/protocol'
import type { LoggedTxn } from '@zabra/server/files'
import { describe, expect, it } from 'vitest'
import type { ServerLog } from '../history/committed-history.ts'
import { committedTransactions } from './committed-transactions.ts'

const transactions = new Map<number, LoggedTxn>()

function transaction(zxid: number): LoggedTxn {
  const known = transactions.get(zxid)
  if (known !== undefined) return known
  const header = { sessionId: 1n, cxid: 0, zxid, time: 0, type: -1 }
  const logged: LoggedTxn = { header, txn: { type: -1, err: 0 }, digest: undefined }
  transactions.set(zxid, logged)
  return logged
}

function log(server: string, entries: number[], removed: number[], snapshots: number[] = []): ServerLog {
  const of = (zxids: number[]): Map<number, LoggedTxn> =>
    new Map(zxids.map((zxid) => [zxid, transaction(zxid)]))
  return { server, entries: of(entries), removed: of(removed), snapshots, problems: [] }
}

const zxidsIn = (logs: ServerLog[]): number[] =>
  committedTransactions(logs, undefined)
    .map(({ header }) => header.zxid)
    .sort((a, b) => a - b)

describe('the committed transactions', () => {
  const later = makeZxid(2, 1)

  it('contain those of logs that were purged', () => {
    expect(zxidsIn([log('s1', [3, later], [1, 2]), log('s2', [3, later], [1, 2])])).toEqual([1, 2, 3, later])
  })

  it('do not contain those that were truncated at the end of an epoch', () => {
    expect(zxidsIn([log('s1', [1, 2, later], [4]), log('s2', [1, 2, later], [3, 4])])).toEqual([1, 2, later])
  })

  it('do not contain those that a snapshot of the leader has replaced at the end of an epoch', () => {
    const logs = [log('s1', [later], [1, 2, 3], [2]), log('s2', [later], [1, 2, 3], [2])]
    expect(zxidsIn(logs)).toEqual([1, 2, later])
    expect(zxidsIn([...logs, log('s3', [3], [1, 2])])).toEqual([1, 2, 3, later])
  })

  it('contain those that one server has not truncated', () => {
    expect(zxidsIn([log('s1', [1, 2, 3, later], []), log('s2', [1, 2, later], [3])])).toEqual([
      1,
      2,
      3,
      later,
    ])
  })
})
