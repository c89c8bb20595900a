import { json, UsageError, utf8, ZooKeeperError, type Client } from '@zabra/client/core'
import { expect, it } from 'vitest'
import * as recipes from './index.ts'
import { MultiLock } from './multi-lock/index.ts'
import { NameService } from './name-service/index.ts'
import { Partitioner } from './partitioner/index.ts'
import { revoke, RevocableMutex, RevocableReadWriteLock } from './revocable/index.ts'
import { ServiceDiscovery } from './service-discovery/index.ts'
import { tree } from './testing/fault-fixture.ts'
import { client, run, setupEachTest } from './testing/setup.ts'
import { TwoPhaseCommit } from './two-phase-commit/index.ts'

setupEachTest('a')

/** Recipes as a program without types sees them. */
// oxlint-disable-next-line typescript/no-explicit-any -- a caller without types
type Untyped = any

const as = (value: unknown): Untyped => value
const codec = json()
const body = (): Promise<void> => Promise.resolve()

/** How each recipe is made, with the options of its constructor. */
const makers: Readonly<Record<string, (c: Client, path: string, options?: object) => unknown>> = {
  Mutex: (c, path, options) => new recipes.Mutex(c, path, as(options)),
  ReadWriteLock: (c, path, options) => new recipes.ReadWriteLock(c, path, as(options)),
  RevocableMutex: (c, path, options) => new RevocableMutex(c, path, as(options)),
  RevocableReadWriteLock: (c, path, options) => new RevocableReadWriteLock(c, path, as(options)),
  Semaphore: (c, path, options = { permits: 1 }) => new recipes.Semaphore(c, path, as(options)),
  Lease: (c, path, options = { holder: 'x', durationMs: 9 }) => new recipes.Lease(c, path, as(options)),
  LeaderElection: (c, path, options) => new recipes.LeaderElection(c, path, as(options)),
  Barrier: (c, path, options) => new recipes.Barrier(c, path, as(options)),
  DoubleBarrier: (c, path, options = { members: 2 }) => new recipes.DoubleBarrier(c, path, as(options)),
  Group: (c, path, options) => new recipes.Group(c, path, as(options)),
  Party: (c, path, options) => new recipes.Party(c, path, as(options)),
  Queue: (c, path, options = { codec }) => new recipes.Queue(c, path, as(options)),
  AtomicValue: (c, path, options = { codec, initial: 0 }) => new recipes.AtomicValue(c, path, as(options)),
  Counter: (c, path, options) => new recipes.Counter(c, path, as(options)),
  UniqueIds: (c, path, options) => new recipes.UniqueIds(c, path, as(options)),
  Configuration: (c, path, options = { codec }) => new recipes.Configuration(c, path, as(options)),
  PersistentNode: (c, path, options) => new recipes.PersistentNode(c, path, '', as(options)),
  TreeCache: (c, path, options) => new recipes.TreeCache(c, path, as(options)),
  Partitioner: (c, path, options) => new Partitioner(c, path, ['a'], as(options)),
  NameService: (c, path) => new NameService(c, path, codec),
  ServiceDiscovery: (c, path, options) => new ServiceDiscovery(c, path, as(options)),
  TwoPhaseCommit: (c, path) => new TwoPhaseCommit(c, path),
  revoke: (c, path, options) => revoke(c, path, as(options)),
  watchData: (c, path, options) => recipes.watchData(c, path, as(options)).next(),
  watchChildren: (c, path, options) => recipes.watchChildren(c, path, as(options)).next(),
  settledChildren: (c, path, options) => recipes.settledChildren(c, path, 0, as(options)),
}
const withoutOptions = ['NameService', 'TwoPhaseCommit']

/** A recipe by name, as a program without types sees it. */
const made = (name: string): Untyped => as(makers[name]!(client, '/wrong'))

/** Calls that take options, with these as the last argument. */
const calls: Readonly<Record<string, (options: unknown) => unknown>> = {
  'Mutex.acquire': (o) => made('Mutex').acquire(o),
  'Mutex.tryAcquire': (o) => made('Mutex').tryAcquire(o),
  'Mutex.run': (o) => made('Mutex').run(body, o),
  'Mutex.participants': (o) => made('Mutex').participants(o),
  'RevocableMutex.acquire': (o) => made('RevocableMutex').acquire(o),
  'RevocableMutex.run': (o) => made('RevocableMutex').run(body, o),
  'ReadWriteLock.read.acquire': (o) => made('ReadWriteLock').read.acquire(o),
  'ReadWriteLock.write.tryAcquire': (o) => made('ReadWriteLock').write.tryAcquire(o),
  'ReadWriteLock.write.run': (o) => made('ReadWriteLock').write.run(body, o),
  'ReadWriteLock.participants': (o) => made('ReadWriteLock').participants(o),
  'Semaphore.acquire': (o) => made('Semaphore').acquire(o),
  'Semaphore.tryAcquire': (o) => made('Semaphore').tryAcquire(o),
  'Semaphore.run': (o) => made('Semaphore').run(body, o),
  'Semaphore.holders': (o) => made('Semaphore').holders(o),
  'MultiLock.acquire': (o) => new MultiLock([made('Mutex')]).acquire(as(o)),
  'MultiLock.tryAcquire': (o) => new MultiLock([made('Mutex')]).tryAcquire(as(o)),
  'MultiLock.run': (o) => new MultiLock([made('Mutex')]).run(body, as(o)),
  'Lease.acquire': (o) => made('Lease').acquire(o),
  'Lease.tryAcquire': (o) => made('Lease').tryAcquire(o),
  'Lease.run': (o) => made('Lease').run(body, o),
  'LeaderElection.acquire': (o) => made('LeaderElection').acquire(o),
  'LeaderElection.lead': (o) => made('LeaderElection').lead(body, o),
  'LeaderElection.leadership': (o) => made('LeaderElection').leadership(o).next(),
  'LeaderElection.observe': (o) => made('LeaderElection').observe(o).next(),
  'LeaderElection.participants': (o) => made('LeaderElection').participants(o),
  'Barrier.set': (o) => made('Barrier').set(o),
  'Barrier.remove': (o) => made('Barrier').remove(o),
  'Barrier.wait': (o) => made('Barrier').wait(o),
  'Barrier.waitForPresence': (o) => made('Barrier').waitForPresence(o),
  'DoubleBarrier.enter': (o) => made('DoubleBarrier').enter(o),
  'Group.join': (o) => made('Group').join('x', new Uint8Array(0), o),
  'Group.members': (o) => made('Group').members(o),
  'Group.changes': (o) => made('Group').changes(o).next(),
  'Party.join': (o) => made('Party').join('x', o),
  'Party.members': (o) => made('Party').members(o),
  'Queue.put': (o) => made('Queue').put('x', o),
  'Queue.putAll': (o) => made('Queue').putAll(['x'], o),
  'Queue.take': (o) => made('Queue').take(o),
  'Queue.takeById': (o) => made('Queue').takeById('x', o),
  'Queue.receive': (o) => made('Queue').receive(o).next(),
  'Queue.peek': (o) => made('Queue').peek(o),
  'Queue.size': (o) => made('Queue').size(o),
  'Queue.deadLetters': (o) => made('Queue').deadLetters(o),
  'AtomicValue.get': (o) => made('AtomicValue').get(o),
  'AtomicValue.set': (o) => made('AtomicValue').set(1, o),
  'AtomicValue.update': (o) => made('AtomicValue').update((n: number) => n, o),
  'AtomicValue.compareAndSet': (o) => made('AtomicValue').compareAndSet({ stat: {} }, 1, o),
  'AtomicValue.updates': (o) => made('AtomicValue').updates(o).next(),
  'Counter.get': (o) => made('Counter').get(o),
  'Counter.add': (o) => made('Counter').add(1, o),
  'Counter.updates': (o) => made('Counter').updates(o).next(),
  'UniqueIds.next': (o) => made('UniqueIds').next(o),
  'Configuration.get': (o) => made('Configuration').get(o),
  'Configuration.set': (o) => made('Configuration').set(1, o),
  'Configuration.update': (o) => made('Configuration').update((n: number) => n, o),
  'Configuration.updates': (o) => made('Configuration').updates(o).next(),
  'TreeCache.events': (o) => made('TreeCache').events(o).next(),
  'Partitioner.shares': (o) => made('Partitioner').shares(o).next(),
  'Partitioner.run': (o) => made('Partitioner').run(body, o),
  'NameService.register': (o) => made('NameService').register('x', 1, o),
  'NameService.resolve': (o) => made('NameService').resolve('x', o),
  'NameService.names': (o) => made('NameService').names(o),
  'ServiceDiscovery.register': (o) => made('ServiceDiscovery').register({ name: 'x', id: 'y' }, o),
  'ServiceDiscovery.names': (o) => made('ServiceDiscovery').names(o),
  'ServiceDiscovery.instances': (o) => made('ServiceDiscovery').instances('x', o),
  'ServiceDiscovery.provider': (o) => made('ServiceDiscovery').provider('x', o),
  'TwoPhaseCommit.join': (o) =>
    made('TwoPhaseCommit').join('x', { prepare: body, commit: body, abort: body }, o),
}

/** Calls with other wrong arguments. */
const wrongCalls: Readonly<Record<string, () => unknown>> = {
  'a body that is no function': () => made('Mutex').run('x'),
  'a body of a read lock that is missing': () => made('ReadWriteLock').read.run(),
  'a body of a revocable mutex that is missing': () => made('RevocableMutex').run(),
  'a body of a semaphore that is missing': () => made('Semaphore').run(),
  'a body of a lease that is missing': () => made('Lease').run(),
  'a body of a leader that is missing': () => made('LeaderElection').lead(),
  'a body of a partitioner that is missing': () => made('Partitioner').run(),
  'an owner that is no object': () => made('Mutex').acquire({ owner: 'me' }),
  'no locks': () => new MultiLock(as(undefined)),
  'a list without locks': () => new MultiLock(as(['/a'])),
  'permits that are no number': () => made('Semaphore').acquire({ permits: 'two' }),
  'a semaphore without permits': () => makers['Semaphore']!(client, '/s', {}),
  'new permits that are no number': () => made('Semaphore').setPermits('x'),
  'a lease without a holder': () => makers['Lease']!(client, '/l', { durationMs: 5 }),
  'a lease without options': () => new recipes.Lease(client, '/l', as(undefined)),
  'a double barrier without options': () => new recipes.DoubleBarrier(client, '/b', as(undefined)),
  'a group with a member without an id': () => made('Group').join(),
  'a group with a member without data': () => made('Group').join('x'),
  'a party with a member without an identifier': () => made('Party').join(),
  'a queue without a codec': () => new recipes.Queue(client, '/q', as({})),
  'a queue without options': () => new recipes.Queue(client, '/q', as(undefined)),
  'values that are no list': () => made('Queue').putAll(5),
  'an atomic value without options': () => new recipes.AtomicValue(client, '/v', as(undefined)),
  'a value that was not read': () => made('AtomicValue').compareAndSet(undefined, 1),
  'a change that is no function': () => made('AtomicValue').update(5),
  'an amount that is a string': () => made('Counter').add('x'),
  'an amount that is a fraction': () => made('Counter').add(0.5),
  'a configuration without options': () => new recipes.Configuration(client, '/c', as(undefined)),
  'a change of a configuration that is no function': () =>
    as(new recipes.Configuration(client, '/c', { codec, defaults: 1 })).update(5),
  'data that is a number': () => new recipes.PersistentNode(client, '/p', as(5)),
  'new data that is a number': () => made('PersistentNode').setData(5),
  'items that are no list': () => new Partitioner(client, '/p', as('items')),
  'a name service without a codec': () => new NameService(client, '/n', as(undefined)),
  'a name that is a number': () => made('NameService').register(5, 1),
  'no name to resolve': () => made('NameService').resolve(),
  'names that are missing': () => made('NameService').rename('x'),
  'no instance': () => made('ServiceDiscovery').register(),
  'an instance without a name': () => made('ServiceDiscovery').register({}),
  'a service without a name': () => made('ServiceDiscovery').provider(),
  'no transaction': () => made('TwoPhaseCommit').run(),
  'a transaction without participants': () => made('TwoPhaseCommit').run({ payload: '', deadlineMs: 5 }),
  'a site without handlers': () => made('TwoPhaseCommit').join('x'),
  'a time to settle that is a string': () => as(recipes.settledChildren)(client, '/x', 'soon'),
  'a lock that is no handle': () => made('ReadWriteLock').downgrade({}),
  'no lock to upgrade': () => made('ReadWriteLock').tryUpgrade(),
  'a text that the codec does not take': () =>
    as(new recipes.Queue(client, '/q', { codec: utf8 })).put(Symbol('x')),
}

/** Resolves to what a call throws or rejects with. */
async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    await run(Promise.resolve(call()))
  } catch (error) {
    return error
  }
  return 'no error'
}

const badOptions: readonly unknown[] = [null, 5, 'options', { tiemoutMs: 5 }, { timeout: 5 }, { signal: 5 }]

it.each(Object.keys(makers))('%s refuses a client, a path and options that are none', async (name) => {
  const make = makers[name]!
  for (const none of [undefined, null, 5, {}])
    expect(await errorOf(() => make(as(none), '/x')), `client ${JSON.stringify(none)}`).toBeInstanceOf(
      UsageError,
    )
  for (const path of [undefined, null, 5, {}, [], '', 'x', '/x/', '/x//y'])
    expect(await errorOf(() => make(client, as(path))), `path ${JSON.stringify(path)}`).toBeInstanceOf(
      UsageError,
    )
  if (withoutOptions.includes(name)) return
  for (const options of badOptions) {
    const error = await errorOf(() => make(client, '/x', as(options)))
    expect(error, JSON.stringify(options)).toBeInstanceOf(UsageError)
  }
})

/** Handles whose release takes options. */
const releases: Readonly<Record<string, () => Promise<{ release(options?: object): Promise<void> }>>> = {
  'a mutex': () => new recipes.Mutex(client, '/x').acquire(),
  'a mutex of an owner': () => new recipes.Mutex(client, '/x').acquire({ owner: {} }),
  'several locks': () => new MultiLock([new recipes.Mutex(client, '/x')]).acquire(),
  'a member of a double barrier': () => new recipes.DoubleBarrier(client, '/x', { members: 1 }).enter(),
}

it('a recipe names the path that its caller gave, and the option that was probably meant', async () => {
  expect(await errorOf(() => makers['Mutex']!(client, 'locks/x'))).toMatchObject({
    message: 'Mutex: Expected a path that starts with /, got "locks/x"',
  })
  expect(await errorOf(() => makers['Mutex']!(client, '/x', { dta: 'me' }))).toMatchObject({
    message: expect.stringMatching(/^Mutex: Expected options among .*, got dta\. Did you mean data\?$/),
  })
  expect(await errorOf(() => calls['Mutex.acquire']!({ timeout: 5 }))).toMatchObject({
    message: expect.stringMatching(/, got timeout\. Did you mean timeoutMs\?$/),
  })
  expect(await errorOf(() => wrongCalls['a body of a leader that is missing']!())).toMatchObject({
    message: 'lead: Expected a body as a function, got undefined',
  })
})

it.each(Object.keys(calls))('%s refuses unknown and wrong options', async (name) => {
  for (const options of badOptions) {
    const error = await errorOf(() => calls[name]!(options))
    expect(error, JSON.stringify(options)).toBeInstanceOf(UsageError)
    expect(String(error), JSON.stringify(options)).toContain('Expected')
  }
  expect(await errorOf(() => calls[name]!({ timeoutMs: 'soon' }))).toBeInstanceOf(UsageError)
})

it.each(Object.keys(wrongCalls))('%s is refused with a ZooKeeperError', async (name) => {
  expect(await errorOf(wrongCalls[name]!)).toBeInstanceOf(ZooKeeperError)
})

it.each(Object.entries(releases))(
  'the release of %s with wrong options is refused, and the next one releases',
  async (_name, take) => {
    const held = await run(take())
    await run(
      errorOf(() => held.release({ wrong: 1 } as object)).then((e) => expect(e).toBeInstanceOf(UsageError)),
    )
    await run(held.release())
    const paths = await run(tree(client))
    expect(paths.filter((path) => /-\d{10}$|\/r0\//.test(path))).toEqual([])
  },
)

it('the table has every recipe', () => {
  const classes = Object.entries(recipes)
    .filter(([, value]) => typeof value === 'function' && String(value).startsWith('class '))
    .map(([name]) => name)
    .filter((name) => !name.endsWith('Error') && name !== 'Message')
  expect(Object.keys(makers)).toEqual(expect.arrayContaining(classes))
})
