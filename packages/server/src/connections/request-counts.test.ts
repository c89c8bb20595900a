import { ErrorCode, OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { RequestCounts } from './request-counts.ts'

it('RequestCounts counts replies by operation and result, and ignores types and results that do not exist', () => {
  const counts = new RequestCounts()
  const count = (op: string, result: string): number | undefined =>
    [...counts.entries()].find((one) => one.op === op && one.result === result)?.count
  expect([count('create', 'ok'), count('create', 'nodeexists')]).toEqual([0, undefined])
  for (const err of [0, 0, ErrorCode.NODEEXISTS]) counts.count(OpCode.create, err)
  counts.count(OpCode.closeSession, 0)
  for (const type of [-17, 112, 2 ** 31 - 1, -(2 ** 31)]) counts.count(type, 0)
  for (const err of [1, -128, -(2 ** 31)]) counts.count(OpCode.create, err)
  expect([count('create', 'ok'), count('create', 'nodeexists'), count('closeSession', 'ok')]).toEqual([
    2, 1, 1,
  ])
  expect([...counts.entries()].reduce((sum, one) => sum + one.count, 0)).toBe(4)
})
