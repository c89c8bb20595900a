import {
  ManualClock,
  MemoryNetwork,
  NetworkError,
  SeededRandom,
  silentLogger,
  type Address,
  type Connection,
} from '@zabra/runtime'
import { expect, it } from 'vitest'
import { parseConfiguration, type ServerId } from '../core/quorum/index.ts'
import type { MemberContext } from './context.ts'
import {
  connectToMaster,
  dial,
  dialDefaults,
  type DialOptions,
  type MasterConnection,
} from './connect-to-master.ts'

const MASTER_PORT = 5001
const members = parseConfiguration(
  ['1:participant', '2:participant', '3:participant', '4:participant', '9:observer']
    .map((each) => each.split(':'))
    .map(([id, role]) => `server.${id}=h${id}:1:2:${role}`)
    .join('\n'),
)

/**
 * Connects observer 9 to its learner master, where server 4 leads and only the addresses in `open` accept connections; the others refuse
 * them for `answersForMs` milliseconds, and do not answer from then on.
 */
async function connectObserver(seed: number, open: readonly string[], answersForMs = Infinity) {
  const clock = new ManualClock()
  const startedAt = clock.monotonic()
  const tried: string[] = []
  const reasons: string[] = []
  const connect = async (
    { host, port }: Address,
    { signal }: { signal: AbortSignal },
  ): Promise<Connection> => {
    tried.push(`${host}:${port}`)
    if (port === MASTER_PORT && clock.monotonic() - startedAt >= answersForMs)
      await new Promise((_, reject) =>
        signal.addEventListener('abort', () => reject(new NetworkError('too late', 'ABORT_ERR'))),
      )
    if (!open.includes(`${host}:${port}`)) throw new NetworkError('ECONNREFUSED', 'ECONNREFUSED')
    return { remote: { host, port } } as unknown as Connection
  }
  const info = (facts: object): void => void reasons.push(...(facts as { reasons: string[] }).reasons)
  const context = {
    settings: {
      observerMasterPort: MASTER_PORT,
      tickTimeMs: 1000,
      initLimit: 10,
      connectToLearnerMasterLimit: 0,
      connectRetryDelayMs: 100,
    },
    security: { network: { connect }, open: async () => new Uint8Array(0) },
    platform: { clock, random: new SeededRandom(seed), logger: { ...silentLogger, info } },
    membership: {
      active: members,
      addressesOf: (id: ServerId) => [{ host: `h${id}`, port: 1 }],
    },
  } as unknown as MemberContext
  let connected: MasterConnection | undefined
  const { signal } = new AbortController()
  void connectToMaster(context, { leader: 4, isObserver: true, signal }).then(
    (result) => (connected = result),
  )
  for (let waited = 0; connected === undefined && waited < 3000; waited += 50) {
    clock.advance(50)
    await clock.untilIdle()
  }
  return { connected: connected!, tried, reasons }
}

it('observers spread over the followers of their leader', async () => {
  const open = [1, 2, 3, 4].map((id) => `h${id}:${MASTER_PORT}`)
  const counts = new Map<ServerId, number>()
  for (let seed = 1; seed <= 60; seed++) {
    const { connected } = await connectObserver(seed, open)
    counts.set(connected.master, (counts.get(connected.master) ?? 0) + 1)
  }
  expect(new Set(counts.keys())).toEqual(new Set([1, 2, 3]))
  expect(Math.min(...counts.values())).toBeGreaterThan(8)
})

it('an observer connects to the only follower that accepts observers, in whatever order it tries them', async () => {
  for (let seed = 1; seed <= 10; seed++) {
    const { connected } = await connectObserver(seed, ['h4:1', `h2:${MASTER_PORT}`])
    expect([connected.master, connected.connection.remote]).toEqual([2, { host: 'h2', port: MASTER_PORT }])
  }
})

it('an observer connects to the leader when no follower has accepted it within a tick of repeated attempts', async () => {
  const { connected, tried } = await connectObserver(1, ['h4:1', `h4:${MASTER_PORT}`])
  expect([connected.master, connected.connection.remote]).toEqual([4, { host: 'h4', port: 1 }])
  for (const id of [1, 2, 3])
    expect(tried.filter((each) => each === `h${id}:${MASTER_PORT}`).length).toBeGreaterThan(5)
  expect(tried).not.toContain(`h9:${MASTER_PORT}`)
})

it('an observer says what was wrong with its followers, whose last attempt had no time', async () => {
  const { connected, reasons } = await connectObserver(1, ['h4:1'], 900)
  expect(connected.master).toBe(4)
  expect(reasons).toHaveLength(3)
  for (const reason of reasons) expect(reason).toMatch(/ECONNREFUSED$/)
})

const addressOf = (port: number) => ({ host: '127.0.0.1', port })

function dialFixture() {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const closed: number[] = []
  const listen = (port: number) =>
    network.listen({ port }, (connection) =>
      connection.setHandler({ data() {}, drain() {}, closed: () => void closed.push(port) }),
    )
  const options = (ports: readonly number[], more: Partial<DialOptions> = {}): DialOptions => ({
    network,
    clock,
    addresses: ports.map(addressOf),
    timeoutMs: 10_000,
    signal: new AbortController().signal,
    ...dialDefaults,
    ...more,
  })
  const step = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await clock.untilIdle()
  }
  return { clock, network, closed, listen, options, step }
}

it('dial retries for half a second while a leader does not listen', async () => {
  const { listen, options, step } = dialFixture()
  const connection = dial(options([1])).catch((error: unknown) => String(error))
  await step(0)
  for (let waited = 0; waited < 500; waited += 10) await step(10)
  await listen(1)
  expect(await connection).toContain('The server cannot be reached at 127.0.0.1:1')

  const second = dial(options([2]))
  await step(0)
  for (let waited = 0; waited < 300; waited += 10) await step(10)
  await listen(2)
  await step(100)
  expect((await second).remote.port).toBe(2)
})

it('dial makes its first retry after a few milliseconds, when a leader that was just elected listens', async () => {
  const { listen, options, step } = dialFixture()
  const connection = dial(options([1]))
  await step(0)
  await step(5)
  await listen(1)
  await step(10)
  expect((await connection).remote.port).toBe(1)
})

it('dial tries all addresses of a leader at once and closes all but the first connection', async () => {
  const { listen, options, step, closed } = dialFixture()
  await listen(2)
  await listen(3)
  const connection = await dial(options([1, 2, 3]))
  expect(connection.remote.port).toBe(2)
  connection.setHandler({ data() {}, drain() {}, closed: () => void closed.push(0) })
  await step(0)
  expect(closed).toEqual([3])
})

it('dial rejects when its time is over and no address has answered', async () => {
  const { options, step, network } = dialFixture()
  const never: typeof network.connect = (_to, options) =>
    new Promise<never>((_, reject) =>
      options!.signal!.addEventListener('abort', () => reject(new Error('aborted'))),
    )
  let failed: unknown
  void dial(
    options([1], {
      timeoutMs: 250,
      network: { listen: (address, accepted) => network.listen(address, accepted), connect: never },
    }),
  ).catch((error: unknown) => (failed = error))
  await step(0)
  await step(249)
  expect(failed).toBe(undefined)
  await step(1)
  expect(String(failed)).toContain('The server cannot be reached')
})

it('dial closes a connection that is established after its signal has aborted', async () => {
  const { options, network, listen, closed, step } = dialFixture()
  await listen(1)
  const caller = new AbortController()
  let answer!: () => void
  const slow: typeof network.connect = (to) =>
    new Promise<Connection>((resolve) => (answer = () => void network.connect(to).then(resolve))) as never
  const connection = dial(
    options([1], {
      signal: caller.signal,
      network: { listen: (address, accepted) => network.listen(address, accepted), connect: slow },
    }),
  ).catch((error: unknown) => String(error))
  caller.abort()
  answer()
  await step(0)
  expect(await connection).toContain('cannot be reached')
  expect(closed).toEqual([1])
})
