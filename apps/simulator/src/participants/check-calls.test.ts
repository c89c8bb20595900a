import { OPEN_ACL_UNSAFE, OpCode } from '@zabra/protocol'
import type { LoggedTxn, Txn } from '@zabra/server/files'
import { expect, it } from 'vitest'
import { committedHistoryOf, type CommittedHistory } from '../history/committed-history.ts'
import { SimulatedWorld } from '@zabra/testing'
import { CallLog, type Call, type CallKind } from './calls.ts'
import { checkCalls } from './check-calls.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const logged = (zxid: number, txn: Txn): LoggedTxn => ({
  header: { sessionId: 1n, cxid: zxid, zxid, time: 0 },
  txn,
  digest: undefined,
})

/** A history in which `/a` has the data `one` at zxid 2 and `two` at zxid 3. */
const committed: CommittedHistory = committedHistoryOf([
  logged(1, { type: OpCode.createSession, timeOut: 1000 }),
  logged(2, {
    type: OpCode.create2,
    path: '/a',
    data: bytes('one'),
    acl: OPEN_ACL_UNSAFE,
    ephemeral: false,
    parentCVersion: 1,
  }),
  logged(3, { type: OpCode.setData, path: '/a', data: bytes('two'), version: 1 }),
])

const incarnation = new SimulatedWorld(1).addHost('p').start()

function call(kind: CallKind, more: Partial<Call>): Call {
  return {
    client: 'p',
    kind,
    path: '/a',
    uniqueData: undefined,
    isRepeatable: false,
    incarnation,
    invoked: 0,
    outcome: 'done',
    ...more,
  }
}

const shown = (order: number, zxid: number): NonNullable<Call['observed']> => {
  const { stat, data } = committed.model.stateAt('/a', zxid)!
  return { order, path: '/a', stat, data }
}

function violationsOf(calls: readonly Call[], prepare: (log: CallLog) => void = () => {}): string[] {
  const log = new CallLog()
  log.calls.push(...calls)
  prepare(log)
  return checkCalls(log, committed)
}

it('accepts calls that agree with the history', () => {
  const armed = { kind: 'data', observed: shown(1, 2), event: { order: 2 } } as NonNullable<Call['armed']>
  expect(
    violationsOf([
      call('create', { uniqueData: 'one' }),
      call('watch', { observed: shown(1, 2), armed }),
      call('get', { observed: shown(3, 3) }),
      call('set', { uniqueData: 'three', outcome: 'failed', maybeApplied: false }),
    ]),
  ).toEqual([])
})

it.each<[string, Call[], string]>([
  ['a promise that is never settled', [call('get', { outcome: 'pending' })], 'never settled'],
  ['a successful call that was never applied', [call('set', { uniqueData: 'three' })], 'was never applied'],
  [
    'a failed call that was applied',
    [call('set', { uniqueData: 'two', outcome: 'failed', maybeApplied: false })],
    'reports that it was not applied, and it was',
  ],
  [
    'a multi that must fail and was applied',
    [call('failingMulti', { uniqueData: 'two', outcome: 'failed' })],
    'cannot succeed',
  ],
  [
    'a client that observes an older state',
    [call('get', { observed: shown(2, 2) }), call('get', { observed: shown(1, 3) })],
    'a state that no longer existed',
  ],
  [
    'a change observed before its watch fires',
    [
      call('watch', {
        observed: shown(1, 2),
        armed: { kind: 'data', observed: shown(1, 2), event: { order: 9 } } as NonNullable<Call['armed']>,
      }),
      call('get', { observed: shown(3, 3) }),
    ],
    'before it was notified of 0x3',
  ],
  [
    'a change observed after a watch that ends without an event',
    [
      call('watch', { observed: shown(1, 2), armed: { kind: 'data', observed: shown(1, 2) } }),
      call('get', { observed: shown(3, 3) }),
    ],
    'before it was notified of 0x3',
  ],
])('reports %s', (_name, calls, expected) => {
  expect(violationsOf(calls).join()).toContain(expected)
})

it('reports a stream reader that ends with an old state, or outlives its closed client', () => {
  const follower = {
    client: 'p',
    path: '/a',
    incarnation,
    last: shown(1, 2).stat,
    reads: 1,
    isEnded: false,
  }
  expect(violationsOf([], (log) => log.streamReaders.push(follower)).join()).toContain(
    'ended with 0x2 instead of 0x3',
  )
  expect(
    violationsOf([], (log) => {
      log.streamReaders.push(follower)
      log.closedClients.add('p')
    }).join(),
  ).toContain('never ended')
})
