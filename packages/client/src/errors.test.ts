import { ErrorCode } from '@zabra/protocol'
import { expect, expectTypeOf, it } from 'vitest'
import {
  ConnectionLossError,
  errorFromCode,
  errorTable,
  MultiError,
  NoNodeError,
  SessionExpiredError,
  UsageError,
  ZooKeeperError,
  type ErrorScope,
  type ServerFaultError,
  type ZooKeeperErrorCode,
} from './errors.ts'

const noNode: unknown = errorFromCode(-101, { path: '/a' })

it('is() with a code returns whether an error has it, and narrows to its class', () => {
  expect(ZooKeeperError.is(noNode, 'NO_NODE')).toBe(true)
  expect(ZooKeeperError.is(noNode, 'NODE_EXISTS')).toBe(false)
  expect(ZooKeeperError.is(new Error('NO_NODE'), 'NO_NODE')).toBe(false)
  if (ZooKeeperError.is(noNode, 'NO_NODE')) expectTypeOf(noNode).toExtend<NoNodeError>()
  if (ZooKeeperError.is(noNode, 'MULTI_FAILED')) expectTypeOf(noNode.index).toEqualTypeOf<number>()
  // @ts-expect-error a code that no error has
  ZooKeeperError.is(noNode, 'NO_NODES')
})

it('after is() without a code, a test of the code narrows', () => {
  const error: unknown = new SessionExpiredError('', 7n)
  expect.assertions(1)
  if (!ZooKeeperError.is(error)) return
  expectTypeOf(error.code).toEqualTypeOf<ZooKeeperErrorCode>()
  if (error.code === 'SYSTEM_ERROR') expectTypeOf(error).toExtend<ServerFaultError>()
  // @ts-expect-error a code that no error has
  if (error.code === 'SESSION_EXPRED') return
  if (error.code === 'SESSION_EXPIRED') expect(error.sessionId).toBe(7n)
})

it('is() of a class returns whether an error belongs to that class', () => {
  expect(NoNodeError.is(noNode)).toBe(true)
  expect(ConnectionLossError.is(noNode)).toBe(false)
})

it('an error is retryable if the same call may succeed later in the session', () => {
  const retryable = [...errorTable.keys()]
    .map((code) => errorFromCode(code, {}))
    .filter((error) => error.retryable)
  expect(retryable.map(({ code }) => code).toSorted()).toEqual([
    'CONNECTION_LOSS',
    'NEW_CONFIG_NO_QUORUM',
    'NOT_READ_ONLY',
    'OPERATION_TIMEOUT',
    'RECONFIG_IN_PROGRESS',
    'REQUEST_TIMEOUT',
    'SESSION_MOVED',
    'SYSTEM_ERROR',
    'THROTTLED_OP',
  ])
})

it('a system error says that a full disk may be the reason', () => {
  const { message } = errorFromCode(ErrorCode.SYSTEMERROR, { operation: 'setData', path: '/a' })
  expect(message).toBe(
    'setData /a: The server could not process the request, because its disk is full for example. (SYSTEM_ERROR)',
  )
})

it('a MultiError is as retryable as its cause', () => {
  expect(new MultiError('', 0, errorFromCode(-1, {})).retryable).toBe(true)
  expect(new MultiError('', 0, errorFromCode(-101, {})).retryable).toBe(false)
})

it('the scope of an error is what has failed', () => {
  const scopeOf = (code: number): ErrorScope => errorFromCode(code, {}).scope
  expect([-4, -101, -112, -115, -124].map(scopeOf)).toEqual([
    'request',
    'request',
    'session',
    'client',
    'client',
  ])
  expect(new UsageError('').scope).toBe('request')
})
