import { utf8, ZooKeeperError, type Client } from '@zabra/client/core'
import { Semaphore } from '../../semaphore/index.ts'
import { retryUntilKnown } from '../../support/retry.ts'
import { delay } from '../../support/delay.ts'
import { expectEqual, type ScenarioContext } from './context.ts'

const PATH = '/s'
const INITIAL = 3
/** The final limit. */
const MOST = 5

const of = (client: Client): Semaphore => new Semaphore(client, PATH, { permits: INITIAL })

interface Limit {
  readonly permits: number
  readonly version: number
  /** zxid of the change. */
  readonly zxid: bigint
}

/** The limits that one participant set, in order. */
class Limits {
  readonly #client: Client
  readonly #all: Limit[] = []

  constructor(client: Client) {
    this.#client = client
  }

  async set(permits: number): Promise<void> {
    await retryUntilKnown(this.#client, () => of(this.#client).setPermits(permits))
    const { data, stat } = await retryUntilKnown(this.#client, async () => {
      await this.#client.sync(PATH)
      return this.#client.getData(PATH)
    })
    expectEqual('the permits that were set', utf8.decode(data), String(permits))
    this.#all.push({ permits, version: stat.version, zxid: stat.mzxid })
  }

  /**
   * Returns the highest limit that a transaction may have read; where a change was applied twice, its time is
   * unknown.
   */
  at(zxid: bigint): number {
    const place = this.#all.findLastIndex((limit) => limit.zxid < zxid)
    const [now, next] = [this.#all[place]!, this.#all[place + 1]]
    const isSure = next === undefined || next.version === now.version + 1
    return isSure ? now.permits : Math.max(now.permits, next.permits)
  }
}

/** Acquires and releases permits while another client changes their number. */
export async function runPermits(context: ScenarioContext): Promise<void> {
  const { prng, clients, names, observer, sleep, waitUntilHealed, createChecker } = context
  const checker = createChecker(Infinity)
  const limits = new Limits(clients[0]!)
  await limits.set(INITIAL)
  const stop = new AbortController()
  const changing = (async () => {
    while (!stop.signal.aborted) {
      await sleep(prng.between(300, 4000))
      await limits.set(prng.pick([0, 1, 2, INITIAL, MOST]))
    }
    await limits.set(MOST)
  })()
  const participate = async (client: Client, name: string): Promise<void> => {
    while (!stop.signal.aborted) {
      await delay(client, prng.between(0, 1500))
      const weight = prng.between(1, INITIAL + 1)
      try {
        const held = await of(client).acquire({ permits: weight })
        checker.recordGrant(name, held, weight)
        await delay(client, prng.between(0, prng.chance(10) ? 15_000 : 2500))
        await held.release()
      } catch (error) {
        // The limit is lower now, or the session has expired.
        if (!(error instanceof ZooKeeperError)) throw error
      }
    }
  }
  const taking = clients.slice(1).map((client, i) => participate(client, names[i + 1]!))
  for (const each of [changing, ...taking]) each.catch(() => {})
  await sleep(30_000)
  await waitUntilHealed()
  stop.abort()
  await Promise.all([changing, ...taking])
  const violations = checker.sums.filter(({ token, weight }) => weight > limits.at(token))
  const messages = violations.map(({ token, weight }) => `${weight} with ${token}, of ${limits.at(token)}`)
  expectEqual('permits beyond the limit', messages, [])
  // Fails if permits have leaked.
  const all = await of(observer).acquire({ permits: MOST })
  await all.release()
  for (const folder of ['leases', 'locks']) {
    await observer.sync(PATH)
    // The directories are containers, which are removed when empty.
    const { numChildren = 0 } = (await observer.exists(`${PATH}/${folder}`)) ?? {}
    expectEqual(`entries left in ${folder}`, numChildren, 0)
  }
}
