import { expect, expectTypeOf, it } from 'vitest'
import * as core from './core.ts'
import * as node from './node/index.ts'
import * as recipeKit from './recipe-kit.ts'
import * as web from './web/index.ts'
import { ManualWorld } from './testing/manual-world.ts'
import type {
  ACL,
  AuthInfo,
  Bytes,
  CallOptions,
  Client,
  ClientOptions,
  Platform,
  Clock,
  Codec,
  Connection,
  ConnectionHandler,
  ConnectionState,
  CreateMode,
  ErrorPolicy,
  Instrumentation,
  NodeEvent,
  OneShotWatch,
  Ordered,
  Random,
  ReadOp,
  ReadResult,
  RecursiveDeleteOptions,
  ResyncEvent,
  RetryFunction,
  RetryPolicy,
  SaslMechanism,
  ServerAddress,
  SessionCredentials,
  Stat,
  StateChange,
  Transport,
  TypedClient,
  Visit,
  WalkOptions,
  WatchedEvent,
  Watcher,
  WriteOp,
  WriteResult,
  Zxid,
} from './core.ts'

const errors = [
  'AuthFailedError',
  'BadVersionError',
  'ClosedError',
  'ConnectionLossError',
  'MultiError',
  'NoAuthError',
  'NoNodeError',
  'NodeExistsError',
  'NotEmptyError',
  'NotReadOnlyError',
  'OperationTimeoutError',
  'SessionExpiredError',
  'SessionMovedError',
  'ThrottledError',
  'UnknownServerError',
  'UsageError',
  'ZooKeeperError',
]

it('every entry point exports the errors, the codecs and the permissions', () => {
  const common = [...errors, 'json', 'utf8', 'Perms', 'mapConcurrent', 'digestId', 'parseServers']
  for (const entry of [core, node, web]) expect(Object.keys(entry)).toEqual(expect.arrayContaining(common))
})

it('the platform entry points export connect, and the core exports connectWith', () => {
  for (const entry of [node, web])
    expect(entry).toMatchObject({ connect: expect.any(Function), digestMd5: expect.any(Function) })
  for (const name of ['nodeTransport', 'compressed', 'findServers']) expect(node).toHaveProperty(name)
  expect(core).toHaveProperty('connectWith')
  expect(core).not.toHaveProperty('connect')
})

it('the platform entry points export all of the core', () => {
  for (const entry of [node, web])
    expect(Object.keys(entry)).toEqual(expect.arrayContaining(Object.keys(core)))
})

it('internals that recipes need have an entry point of their own', () => {
  const internals = Object.keys(recipeKit)
  expect(internals).toEqual(expect.arrayContaining(['AsyncQueue', 'abortError', 'withCodecErrors']))
  for (const entry of [core, node, web])
    for (const name of [...internals, 'errorFromCode', 'closeReason', 'errorTable'])
      expect(Object.keys(entry)).not.toContain(name)
})

it('a client has every operation', async () => {
  const world = await ManualWorld.start()
  const client = await world.client()
  const operations: readonly (keyof Client)[] = [
    ...(['create', 'delete', 'exists', 'getData', 'setData', 'getChildren', 'getACL', 'setACL'] as const),
    ...(['getAllChildrenNumber', 'getEphemerals', 'sync', 'syncCommitted', 'multi', 'multiRead'] as const),
    ...(['watchOnce', 'watch', 'addAuth', 'whoAmI', 'getConfig', 'reconfig', 'updateServerList'] as const),
    ...(['close', 'detach', 'states', 'chroot', 'withCodec', 'createMissing', 'walk'] as const),
    Symbol.asyncDispose,
  ]
  for (const operation of operations) expect(client[operation], String(operation)).toBeTypeOf('function')
  expect(client).toMatchObject({ state: 'connected', leaseHorizon: expect.any(Number) })
  expect(client.closed).toBeInstanceOf(Promise)
  await world.end()
})

it('the types used by the operations are exported', () => {
  expectTypeOf<Stat['czxid']>().toEqualTypeOf<Zxid>()
  expectTypeOf<Stat['ephemeralOwner']>().toEqualTypeOf<bigint>()
  expectTypeOf<ConnectionState>().extract<'suspended'>().toEqualTypeOf<'suspended'>()
  expectTypeOf<WatchedEvent>().toEqualTypeOf<NodeEvent | ResyncEvent>()
  expectTypeOf<WriteResult<{ op: 'setData'; path: '/'; data: Bytes }>>().toEqualTypeOf<Stat>()
  expectTypeOf<WriteResult<{ op: 'check'; path: '/' }>>().toEqualTypeOf<undefined>()
  expectTypeOf<ReadResult<{ op: 'getChildren'; path: '/' }>>().toEqualTypeOf<{ children: string[] }>()
  expectTypeOf<Awaited<ReturnType<Transport['open']>>>().toEqualTypeOf<Connection>()
  expectTypeOf<Parameters<Connection['setHandler']>[0]>().toEqualTypeOf<ConnectionHandler>()
  expectTypeOf<Platform['clock']>().toEqualTypeOf<Clock>()
  expectTypeOf<Platform['random']>().toEqualTypeOf<Random>()
  expectTypeOf<Client['session']>().toExtend<SessionCredentials>()
  expectTypeOf<StateChange>().toExtend<Ordered>()
  expectTypeOf<Watcher>().toExtend<AsyncIterable<WatchedEvent>>()
  expectTypeOf<OneShotWatch['fired']>().toEqualTypeOf<Promise<NodeEvent>>()
  expectTypeOf<TypedClient<number>['client']>().toEqualTypeOf<Client>()
  expectTypeOf<ClientOptions['auth']>().toEqualTypeOf<readonly AuthInfo[] | undefined>()
  expectTypeOf<ClientOptions['errorPolicy']>().toEqualTypeOf<ErrorPolicy | undefined>()
  expectTypeOf<ClientOptions['instrumentation']>().toEqualTypeOf<Instrumentation | undefined>()
  expectTypeOf<NonNullable<ClientOptions['sasl']>>().toEqualTypeOf<(server: ServerAddress) => SaslMechanism>()
  expectTypeOf<CallOptions['retry']>().toEqualTypeOf<RetryPolicy | RetryFunction | false | undefined>()
  expectTypeOf<RecursiveDeleteOptions>().toExtend<CallOptions>()
  expectTypeOf<WalkOptions>().toExtend<CallOptions>()
  expectTypeOf<Visit['stat']>().toEqualTypeOf<Stat | undefined>()
  expectTypeOf<Codec<string>['encode']>().returns.toEqualTypeOf<Bytes>()
  expectTypeOf<'ephemeral'>().toExtend<CreateMode>()
  expectTypeOf<{ op: 'delete'; path: '/' }>().toExtend<WriteOp>()
  expectTypeOf<{ op: 'getData'; path: '/' }>().toExtend<ReadOp>()
  expectTypeOf<{ perms: 31; scheme: 'world'; id: 'anyone' }>().toExtend<ACL>()
})
