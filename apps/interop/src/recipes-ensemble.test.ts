import { connect, utf8, ZooKeeperError, type Client } from '@zabra/client'
import {
  AmbiguousResultError,
  Counter,
  LeaderElection,
  Mutex,
  Queue,
  ReadWriteLock,
  Semaphore,
  TreeCache,
} from '@zabra/recipes'
import { afterEach, describe, expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { serverUnderTest, reference, type Kind } from './harness/servers.ts'

const CLIENTS = 4

/** Retries work after a lost lock or an ambiguous result, until it succeeds. */
async function retryUntilDone(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      return void (await work())
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }
}

/** Runs all recipes concurrently on several clients while the leader is killed and restarts. */
class RecipeLoad {
  readonly clients: readonly Client[]
  /** Acknowledged guarded writes by path. */
  readonly #turnsOf = new Map<string, number>()
  readonly put: string[] = []
  readonly ambiguousPuts: string[] = []
  readonly got: string[] = []
  acknowledgedAdds = 0n
  ambiguousAdds = 0n
  turns = 0
  #isStopped = false
  #haveAllPut = false

  constructor(clients: readonly Client[]) {
    this.clients = clients
  }

  async run(disturb: () => Promise<void>): Promise<void> {
    const all = this.clients.flatMap((client, n) => [
      this.#repeat(() => this.#lock(client)),
      this.#repeat(() => this.#readWrite(client)),
      this.#repeat(() => this.#permits(client)),
      this.#repeat(() => this.#lead(client)),
      this.#repeat(() => this.#count(client)),
      this.#repeat(() => this.#produce(client, n)),
    ])
    const consumers = this.clients.map((client) => this.#consume(client))
    for (const each of [...all, ...consumers]) each.catch(() => {})
    await disturb()
    this.#isStopped = true
    // Producers may wait for space in the queue, so consumers stop last.
    await Promise.all(all)
    this.#haveAllPut = true
    await Promise.all(consumers)
  }

  /** Waits until the clients have completed `count` more turns. */
  async waitForTurns(count: number): Promise<void> {
    const goal = this.turns + count
    while (this.turns < goal) await this.clients[0]!.sync('/')
  }

  /** Checks that no acknowledged turn is missing from the counters: two concurrent holders would lose one. */
  async checkCounts(observer: Client): Promise<void> {
    expect([...this.#turnsOf.keys()].toSorted()).toEqual(['/of-e', '/of-lock', '/of-rw'])
    for (const [path, turns] of this.#turnsOf) {
      const { data } = await observer.getData(path)
      expect(Number(utf8.decode(data).split(' ')[1]), path).toBeGreaterThanOrEqual(turns)
    }
  }

  async #repeat(work: () => Promise<unknown>): Promise<void> {
    while (!this.#isStopped) {
      await retryUntilDone(work)
      this.turns++
    }
  }

  /** Increments a counter without a version under the guard of a lock, so that two concurrent holders would lose a count. */
  async #guarded(
    client: Client,
    path: string,
    held: Pick<Awaited<ReturnType<Mutex['acquire']>>, 'guard' | 'token'>,
  ) {
    const { data } = await client.getData(path)
    const [last = 0n, count = 0n] = utf8.decode(data).split(' ').map(BigInt)
    expect(held.token).toBeGreaterThanOrEqual(last)
    await held.guard([{ op: 'setData', path, data: utf8.encode(`${held.token} ${count + 1n}`) }])
    this.#turnsOf.set(path, (this.#turnsOf.get(path) ?? 0) + 1)
  }

  #lock(client: Client): Promise<void> {
    return new Mutex(client, '/lock').run((held) => this.#guarded(client, '/of-lock', held))
  }

  async #readWrite(client: Client): Promise<void> {
    const lock = new ReadWriteLock(client, '/rw')
    await lock.write.run((held) => this.#guarded(client, '/of-rw', held))
    await lock.read.run(async (held) => {
      const before = await client.getData('/of-rw')
      const after = await client.getData('/of-rw')
      if (!held.signal.aborted) expect(after.stat.mzxid).toBe(before.stat.mzxid)
    })
  }

  async #permits(client: Client): Promise<void> {
    await using held = await new Semaphore(client, '/s', { permits: 2 }).acquire()
    const { children } = await client.getChildren('/s/leases')
    if (!held.signal.aborted) expect(children.length).toBeLessThanOrEqual(2)
  }

  #lead(client: Client): Promise<void> {
    return new LeaderElection(client, '/e', { announce: true }).lead((leadership) =>
      this.#guarded(client, '/of-e', leadership),
    )
  }

  async #count(client: Client): Promise<void> {
    try {
      await new Counter(client, '/n').add()
      this.acknowledgedAdds++
    } catch (error) {
      if (error instanceof AmbiguousResultError) this.ambiguousAdds++
      throw error
    }
  }

  async #produce(client: Client, n: number): Promise<void> {
    const value = `${n}-${this.put.length}-${this.ambiguousPuts.length}`
    try {
      await new Queue(client, '/q', { codec: utf8, maxItems: 20 }).put(value)
      this.put.push(value)
    } catch (error) {
      if (error instanceof AmbiguousResultError) this.ambiguousPuts.push(value)
      throw error
    }
  }

  async #consume(client: Client): Promise<void> {
    const queue = new Queue(client, '/q', { codec: utf8, maxItems: 20 })
    while (!this.#haveAllPut) {
      try {
        for await (const message of queue.receive({ signal: AbortSignal.timeout(1000) })) {
          this.got.push(message.value)
          await message.ack()
          if (this.#haveAllPut) return
        }
      } catch (error) {
        // The receive timed out, or the connection was lost: the message is delivered again.
        if (!(error instanceof ZooKeeperError)) throw error
      }
    }
  }
}

const suite = (kind: Kind): void => {
  let clients: Client[] = []
  afterEach(() => Promise.all(clients.map((client) => client.close())))

  it('keep their guarantees when the leader is killed under load and restarts', async () => {
    const ensemble = await Ensemble.start({ kinds: [kind, kind, kind] })
    const servers = ensemble.ids.map((id) => ensemble.member(id).address).join(',')
    const open = (): Promise<Client> =>
      connect({ servers, sessionTimeoutMs: 10_000, signal: AbortSignal.timeout(30_000) })
    clients = await Promise.all(Array.from({ length: CLIENTS }, open))
    const observer = await open()
    clients.push(observer)
    for (const path of ['/of-lock', '/of-rw', '/of-e'])
      await observer.create(path, { data: utf8.encode('0 0') })
    const cache = new TreeCache(observer, '/n', { codec: utf8 })
    await cache.ready
    const load = new RecipeLoad(clients.slice(0, CLIENTS))
    await load.run(async () => {
      await load.waitForTurns(60)
      const leader = await ensemble.leader()
      await ensemble.kill(leader)
      await load.waitForTurns(60)
      await ensemble.start(leader)
      await load.waitForTurns(60)
    })
    await observer.sync('/')
    await load.checkCounts(observer)
    const sum = await new Counter(observer, '/n').get()
    expect(sum).toBeGreaterThanOrEqual(load.acknowledgedAdds)
    expect(sum).toBeLessThanOrEqual(load.acknowledgedAdds + load.ambiguousAdds)
    const queue = new Queue(observer, '/q', { codec: utf8 })
    while ((await queue.size()) > 0) load.got.push(await queue.take())
    const known = new Set([...load.put, ...load.ambiguousPuts])
    expect(load.got.filter((value) => !known.has(value))).toEqual([])
    expect(load.put.filter((value) => !load.got.includes(value))).toEqual([])
    await observer.sync('/n')
    expect(cache.stale || BigInt(cache.get('/n')!.value) <= sum).toBe(true)
    await cache.close()
    // Marks and queue entries are deleted asynchronously.
    for (const path of ['/lock', '/rw', '/s/locks', '/s/leases', '/e', '/q/claims', '/q/marks', '/q/line']) {
      const left = async (): Promise<readonly string[]> =>
        (await observer.exists(path)) === undefined ? [] : (await observer.getChildren(path)).children
      await expect.poll(left, { message: path, timeout: 10_000 }).toEqual([])
    }
  })
}

describeWith(['apache'], 'recipes on three servers', () => {
  for (const kind of [reference, serverUnderTest]) describe(`of ${kind}`, () => suite(kind))
})
