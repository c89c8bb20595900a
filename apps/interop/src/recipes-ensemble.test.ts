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
import { ours, reference, type Kind } from './harness/servers.ts'

const MEMBERS = 4

/** Carries on with work whose right was lost, or that nobody can tell the result of, until it was surely done. */
async function retryUntilDone(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      return void (await work())
    } catch (error) {
      if (!(error instanceof ZooKeeperError)) throw error
    }
  }
}

/** What the members of one test do at the same time, each on its own, while the leader goes and comes back. */
class RecipeLoad {
  readonly clients: readonly Client[]
  /** How many guarded writes to each path were told as carried out. */
  readonly #turnsOf = new Map<string, number>()
  readonly put: string[] = []
  readonly ambiguousPuts: string[] = []
  readonly got: string[] = []
  acknowledgedAdds = 0n
  ambiguousAdds = 0n
  turns = 0
  #over = false
  #allPut = false

  constructor(clients: readonly Client[]) {
    this.clients = clients
  }

  async run(turnsAfterwards: () => Promise<void>): Promise<void> {
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
    await turnsAfterwards()
    this.#over = true
    // Producers may wait for room, which consumers make.
    await Promise.all(all)
    this.#allPut = true
    await Promise.all(consumers)
  }

  /** So that a test goes on until everybody has got somewhere since. */
  async waitForTurns(count: number): Promise<void> {
    const goal = this.turns + count
    while (this.turns < goal) await this.clients[0]!.sync('/')
  }

  /** Whoever was told that its turn counted, counts: with two holders at a time one of them would be lost. */
  async checkCounts(witness: Client): Promise<void> {
    expect([...this.#turnsOf.keys()].toSorted()).toEqual(['/of-e', '/of-lock', '/of-rw'])
    for (const [path, turns] of this.#turnsOf) {
      const { data } = await witness.getData(path)
      expect(Number(utf8.decode(data).split(' ')[1]), path).toBeGreaterThanOrEqual(turns)
    }
  }

  async #repeat(work: () => Promise<unknown>): Promise<void> {
    while (!this.#over) {
      await retryUntilDone(work)
      this.turns++
    }
  }

  /** Two who hold it at a time would lose a count: each adds without a version, under the guard of its right. */
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
    while (!this.#allPut) {
      try {
        for await (const message of queue.receive({ signal: AbortSignal.timeout(1000) })) {
          this.got.push(message.value)
          await message.ack()
          if (this.#allPut) return
        }
      } catch (error) {
        // Nothing came for a while, or the message was lost on the way: it comes again.
        if (!(error instanceof ZooKeeperError)) throw error
      }
    }
  }
}

const suite = (kind: Kind): void => {
  let ensemble: Ensemble | undefined
  let clients: Client[] = []
  afterEach(async () => {
    await Promise.all(clients.map((client) => client.close()))
    await ensemble?.[Symbol.asyncDispose]()
  })

  it('keep their promises when the leader is killed under load and comes back', async () => {
    ensemble = await Ensemble.start({ kinds: [kind, kind, kind] })
    const servers = ensemble.ids.map((id) => ensemble!.member(id).address).join(',')
    const open = (): Promise<Client> =>
      connect({ servers, sessionTimeout: 10_000, signal: AbortSignal.timeout(30_000) })
    clients = await Promise.all(Array.from({ length: MEMBERS }, open))
    const witness = await open()
    clients.push(witness)
    for (const path of ['/of-lock', '/of-rw', '/of-e']) await witness.create(path, utf8.encode('0 0'))
    const cache = new TreeCache(witness, '/n', { codec: utf8 })
    await cache.ready
    const play = new RecipeLoad(clients.slice(0, MEMBERS))
    await play.run(async () => {
      await play.waitForTurns(60)
      const leader = await ensemble!.leader()
      await ensemble!.kill(leader)
      await play.waitForTurns(60)
      await ensemble!.start(leader)
      await play.waitForTurns(60)
    })
    await witness.sync('/')
    await play.checkCounts(witness)
    const sum = await new Counter(witness, '/n').get()
    expect(sum).toBeGreaterThanOrEqual(play.acknowledgedAdds)
    expect(sum).toBeLessThanOrEqual(play.acknowledgedAdds + play.ambiguousAdds)
    const queue = new Queue(witness, '/q', { codec: utf8 })
    while ((await queue.size()) > 0) play.got.push(await queue.take())
    const known = new Set([...play.put, ...play.ambiguousPuts])
    expect(play.got.filter((value) => !known.has(value))).toEqual([])
    expect(play.put.filter((value) => !play.got.includes(value))).toEqual([])
    await witness.sync('/n')
    expect(cache.stale || BigInt(cache.get('/n')!.value) <= sum).toBe(true)
    await cache.close()
    // Marks and places in a line are removed by requests that nobody waits for, and those come to the witness in their time.
    for (const path of ['/lock', '/rw', '/s/locks', '/s/leases', '/e', '/q/claims', '/q/marks', '/q/line']) {
      const left = async (): Promise<readonly string[]> =>
        (await witness.exists(path)) === undefined ? [] : (await witness.getChildren(path)).children
      await expect.poll(left, { message: path, timeout: 10_000 }).toEqual([])
    }
  })
}

describeWith(['apache'], 'recipes on three servers', () => {
  for (const kind of [reference, ours]) describe(`of ${kind}`, () => suite(kind))
})
