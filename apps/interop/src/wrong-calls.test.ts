import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import * as client from '@zabra/client'
import { connect, json, nodeTransport, utf8, ZooKeeperError, type Client } from '@zabra/client'
import * as otel from '@zabra/client/otel'
import * as recipeKit from '@zabra/client/recipe-kit'
import * as recipes from '@zabra/recipes'
import * as multiLock from '@zabra/recipes/multi-lock'
import * as nameService from '@zabra/recipes/name-service'
import * as partitioner from '@zabra/recipes/partitioner'
import * as revocable from '@zabra/recipes/revocable'
import * as serviceDiscovery from '@zabra/recipes/service-discovery'
import * as twoPhaseCommit from '@zabra/recipes/two-phase-commit'
import { beforeAll, expect, it } from 'vitest'
import { serverUnderTest, Server } from './harness/servers.ts'
import { Declarations, type Callable, type Parameter } from './wrong-calls/callables.ts'
import { variantsOf } from './wrong-calls/values.ts'

type Call = (...args: readonly unknown[]) => unknown
type Constructor = new (...args: readonly unknown[]) => Readonly<Record<string, Call>>

const packages = resolve(import.meta.dirname, '../../../packages')
const reports = ['client', 'recipes'].map((name) =>
  readFileSync(`${packages}/${name}/${name}.api.d.ts`, 'utf8'),
)
const declarations = new Declarations(reports.join('\n'))
const exported: Readonly<Record<string, unknown>> = {
  ...client,
  ...otel,
  ...recipes,
  ...multiLock,
  ...nameService,
  ...partitioner,
  ...revocable,
  ...serviceDiscovery,
  ...serviceDiscovery.strategies,
  ...twoPhaseCommit,
}

const codec = json()
const body = (): Promise<void> => Promise.resolve()

/** How an object is got that no constructor of the API makes. */
const makers: Readonly<Record<string, (client: Client, path: string) => unknown>> = {
  Client: (c) => c,
  NodeHandle: (c, path) => c.node(path, utf8),
  TypedClient: (c) => c.withCodec(utf8),
  LockHandle: (c, path) => new recipes.Mutex(c, path).acquire(),
  LockSide: (c, path) => new recipes.ReadWriteLock(c, path).read,
  RevocableLockSide: (c, path) => new revocable.RevocableReadWriteLock(c, path).read,
  BarrierHandle: (c, path) => new recipes.DoubleBarrier(c, path, { members: 1 }).enter(),
  Membership: (c, path) => new recipes.Group(c, path).join('x', new Uint8Array(0)),
  Message: async (c, path) => {
    const queue = new recipes.Queue(c, path, { codec })
    await queue.put('x')
    return (await queue.receive().next()).value
  },
  Registration: (c, path) => new nameService.NameService(c, path, codec).register('x', 1),
  ServiceRegistration: (c, path) => new serviceDiscovery.ServiceDiscovery(c, path).register({ name: 'x' }),
}

/** What the caller gives and the client calls, errors, and functions for authors of recipes. */
const isLeftOut = ({ owner = '', name }: Callable): boolean =>
  /^(?:Codec|PayloadCodec|Instrumentation|Transport|NodeTransport|SaslMechanism|ParticipantHandlers|AsyncQueue)$|Error$/.test(
    owner,
  ) ||
  (owner === '' && (name in recipeKit || name === 'random'))

/** A right value for each type that has a required property, or none at all. */
const rightValues: Readonly<Record<string, (c: Client) => unknown>> = {
  Client: (c) => c,
  'Codec<T>': () => utf8,
  'Codec<Instance<T>>': () => codec,
  Data: () => 'x',
  'readonly ACL[]': () => [{ perms: 31, scheme: 'world', id: 'anyone' }],
  'Bytes | string': () => 'user:password',
  T: () => 'x',
  W: () => 'x',
  K: () => 'data',
  number: () => 1,
  'bigint | number': () => 1,
  ReconfigChange: () => ({ joining: 'server.9=127.0.0.1:1:1;1' }),
  ConnectDefaults: (c) => ({ platform: c.platform, transport: nodeTransport() }),
  DigestMd5Options: () => ({ username: 'u', password: 'p' }),
  'string | readonly string[]': () => '127.0.0.1:1',
  'string | ServerAddress': () => '127.0.0.1:1',
  ServerAddress: () => ({ scheme: 'tcp', host: 'a', port: 1 }),
  'readonly (string | MissingNode)[]': () => ['/missing'],
  '4 | 8': () => 4,
  LeaseOptions: () => ({ holder: 'x', durationMs: 1000 }),
  SemaphoreOptions: () => ({ permits: 1 }),
  '{ readonly members: number; }': () => ({ members: 1 }),
  'readonly Mutex[]': (c) => [new recipes.Mutex(c, '/mutex')],
  'AtomicValueOptions<T>': () => ({ codec, initial: 0 }),
  'QueueOptions<T>': () => ({ codec }),
  'ConfigurationOptions<T>': () => ({ codec }),
  'readonly string[]': () => ['x'],
  'readonly T[]': () => ['x'],
  'NewInstance<T>': () => ({ name: 'x' }),
  Instance: () => ({ name: 'x', id: 'y', registrationTimeUTC: 0, serviceType: 'DYNAMIC', enabled: true }),
  LockHandle: () => ({}),
  ParticipantHandlers: () => ({ prepare: body, commit: body, abort: body }),
  TransactionRequest: () => ({ participants: ['x'], payload: 'x', deadlineMs: 1 }),
  '{ readonly stat: Stat; }': () => ({ stat: { version: 0, czxid: 0n, mzxid: 0n } }),
  'Iterable<T> | AsyncIterable<T>': () => [1],
  "Pick<Random, 'bytes'>": () => ({ bytes: (length: number) => new Uint8Array(length) }),
  'Readonly<Record<string, string>>': () => ({}),
  "Partial<Omit<Instance<T>, 'name' | 'id' | 'serviceType'>>": () => ({}),
}

function rightValue(c: Client, { name, type }: Parameter): unknown {
  const known = rightValues[type.replaceAll(/\s+/g, ' ')]
  if (name === 'operations') return []
  if (known !== undefined) return known(c)
  if (type === 'string') return /path|root|base|prefix/i.test(name) ? '/path' : 'digest'
  if (type.includes('=>') || type.startsWith('Strategy')) return body
  if (type.includes('ConnectOptions')) return { servers: server.address }
  if (/Options|^\{|Abortable/.test(type)) return {}
  throw new Error(`Expected a right value for ${name}: ${type} in the table of this test, got none`)
}

/** Returns the function that a row of the report names, with its object if it has one. */
async function callOf(c: Client, { owner, name }: Callable): Promise<Call> {
  if (owner === undefined) return exported[name] as Call
  const type = exported[owner] as Constructor
  if (name === 'constructor') return (...args) => (new type(...args) as { readonly ready?: unknown }).ready
  const maker = makers[owner]
  if (maker !== undefined) {
    const made = (await maker(c, `/${owner}`)) as Readonly<Record<string, Call>>
    return (...args) => made[name]!(...args)
  }
  const inherited = owner === 'RevocableMutex' ? 'Mutex' : owner
  const { parameters } = declarations.callables.find(
    (one) => one.owner === inherited && one.name === 'constructor',
  )!
  const made = new type(...parameters.map((parameter) => rightValue(c, parameter)))
  return (...args) => made[name]!(...args)
}

/** Resolves to what a call throws or rejects with, or the first step of what it returns; undefined for neither. */
async function errorOf(call: () => unknown): Promise<unknown> {
  try {
    const result = call() as Partial<AsyncIterator<unknown>> | undefined
    await (typeof result?.next === 'function' ? result.next() : result)
    return undefined
  } catch (error) {
    return error
  }
}

/** Right calls that the types of the last overload, or the names of parameters, do not tell. */
const isRight = (call: string): boolean =>
  /delete options \{ recursive: true \}$|^Client\.node codec undefined$|^Client\.chroot path ''$|^TreeCache\.\w+ path ' ?'$/.test(
    call,
  ) ||
  /(?:register instance|update changes) \{ \w+: (?:null|undefined) \}$|\.create options (?:\{\}|Proxy)$/.test(
    call,
  )

function problemOf(error: unknown, mustRefuse: boolean): string | undefined {
  if (error === undefined) return mustRefuse ? 'is accepted' : undefined
  if (!ZooKeeperError.is(error)) {
    const { name, message } = error as Error
    // What a four-letter word rejects with where nothing listens.
    return name === 'NetworkError' && !mustRefuse ? undefined : `throws ${name}: ${message}`
  }
  const isClear = /USAGE|ENCODE_FAILED|AUTH_FAILED/.test(error.code) && /[Ee]xpected/.test(error.message)
  return mustRefuse && !isClear ? `rejects with ${error.code}: ${error.message}` : undefined
}

let server: Server
beforeAll(async () => {
  server = await Server.start({ kind: serverUnderTest })
})

const callables = declarations.callables.filter((one) => one.parameters.length > 0 && !isLeftOut(one))

it('the table has every function, constructor and method with a parameter', () => {
  expect(callables.length).toBeGreaterThan(150)
})

it.each(callables.map((one) => [[one.owner, one.name].filter(Boolean).join('.'), one] as const))(
  '%s refuses wrong arguments with a ZooKeeperError, and ends with its client',
  async (name, callable) => {
    const c = await connect({ servers: server.address })
    const call = await callOf(c, callable)
    const right = callable.parameters.map((parameter) => rightValue(c, parameter))
    const problems: string[] = []
    const pending = new Set<string>()
    const running: Promise<void>[] = []
    for (const { index, label, value, mustRefuse } of variantsOf(declarations, callable, right)) {
      pending.add(label)
      const args = right.map((one, i) => (i === index ? value : one))
      const ended = errorOf(() => call(...args)).then((error) => {
        pending.delete(label)
        const problem = problemOf(error, mustRefuse && !isRight(`${name} ${label}`))
        if (problem !== undefined) problems.push(`${label} ${problem}`)
      })
      running.push(ended)
    }
    await c.exists('/').catch(() => {})
    await c.close()
    const late = AbortSignal.timeout(30_000)
    await Promise.race([Promise.all(running), once(late, 'abort')])
    expect([...problems, ...[...pending].map((label) => `${label} does not end`)]).toEqual([])
  },
)
