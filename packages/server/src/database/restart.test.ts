import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { counterOf, epochOf } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { RawTxn } from '../persistence/index.ts'
import { LeaderHistory, DatabaseFixture, treesEqual, zxidOf } from './testing/database-fixture.ts'
import { randomRuns } from '../testing/random-runs.ts'

const RUNS = randomRuns(150)
const SETTINGS = { txnLogSizeLimitBytes: 700, snapCount: 1000 }

/** A history that a member may have after a crash: a prefix of `txns`, up to the transaction `atLeast` at least. */
interface AllowedHistory {
  readonly txns: readonly RawTxn[]
  readonly atLeast: number
}

/** A member with random operations, changes of leader and power cuts. */
class RandomRun {
  readonly random: SeededRandom
  fixture: DatabaseFixture
  /** Part of node names, so that the nodes of two histories differ. */
  #branch = 0
  history: LeaderHistory = new LeaderHistory()

  private constructor(seed: number, fixture: DatabaseFixture) {
    this.random = new SeededRandom(seed)
    this.fixture = fixture
  }

  static async start(seed: number): Promise<RandomRun> {
    const fixture = await DatabaseFixture.open(new MemoryDisk(), SETTINGS)
    return new RandomRun(seed, fixture)
  }

  get last(): number {
    return this.history.txns.at(-1)?.zxid ?? 0
  }

  extend(
    history: LeaderHistory,
    count: number,
    epoch = epochOf(history.txns.at(-1)?.zxid ?? zxidOf(1, 0)),
  ): RawTxn[] {
    const last = history.txns.at(-1)?.zxid ?? 0
    let counter = epochOf(last) === epoch ? counterOf(last) : 0
    return Array.from({ length: count }, () => {
      const zxid = zxidOf(epoch, ++counter)
      return history.create(zxid, `/${this.#branch}-${zxid.toString(16)}`)
    })
  }

  prefix(count: number): LeaderHistory {
    const author = new LeaderHistory()
    this.#branch++
    for (const { zxid, payload } of this.history.txns.slice(0, count)) author.replay(zxid, payload)
    return author
  }

  /** Runs a random operation, which crashes at a random call in one of three cases, and checks the history afterwards. */
  async step(): Promise<void> {
    const { random } = this
    const kind = random.below(5)
    const crashes = random.below(3) === 0
    let calls = 0
    const at = random.below(40)
    if (crashes)
      this.fixture.disk.injectFault = (call) =>
        call !== 'read' && calls++ >= at ? { code: 'EIO', writtenBytes: random.below(600) } : undefined
    const { allowed, done, after } = await this.#operate(kind)
    if (crashes) {
      await this.fixture.crash(random.below(2) === 0)
      await this.fixture.open()
      this.#expectOneOf(allowed)
    } else {
      expect(done).toBeUndefined()
      after()
      this.#expectOneOf([{ txns: this.history.txns, atLeast: this.last }])
    }
  }

  /** Expects the member to have one of the histories, and continues with it. */
  #expectOneOf(allowed: readonly AllowedHistory[]): void {
    const { database } = this.fixture
    for (const { txns, atLeast } of allowed) {
      const count = txns.filter(({ zxid }) => zxid <= database.lastZxid).length
      const found = new LeaderHistory()
      for (const { zxid, payload } of txns.slice(0, count)) found.replay(zxid, payload)
      const isThis =
        (found.txns.at(-1)?.zxid ?? 0) === database.lastZxid && treesEqual(found.tree, database.tree)
      if (!isThis || database.lastZxid < atLeast) continue
      this.history = found
      return
    }
    const had = allowed.map(
      ({ txns, atLeast }) => `${txns.at(-1)?.zxid.toString(16)} from ${atLeast.toString(16)} on`,
    )
    throw new Error(
      `Expected ${had.join(' or ')}, got ${database.lastZxid.toString(16)} with ${this.fixture.nodeNames().join(' ')}`,
    )
  }

  async #operate(kind: number): Promise<{ allowed: AllowedHistory[]; done: unknown; after: () => void }> {
    const { fixture, random, history } = this
    const { database } = fixture
    const old: AllowedHistory = { txns: history.txns, atLeast: this.last }
    const errorOf = (work: Promise<unknown>): Promise<unknown> =>
      work.then(
        () => undefined,
        (error: unknown) => error,
      )
    const newer = Math.max(epochOf(this.last), database.epochs.accepted) + random.below(2)
    if (kind === 0) return { allowed: [old], done: await errorOf(database.takeSnapshot([])), after() {} }
    if (kind === 1 && history.txns.length > 2) {
      const count = 1 + random.below(history.txns.length - 1)
      const shorter = this.prefix(count)
      const target = shorter.txns.at(-1)!.zxid
      let exact = true
      const work = database.truncateTo(target).then((result) => (exact = result.isExact))
      const allowed = [{ txns: history.txns, atLeast: target }]
      return { allowed, done: await errorOf(work), after: () => void (exact && (this.history = shorter)) }
    }
    if (kind === 2) {
      const other = this.prefix(random.below(history.txns.length + 1))
      await errorOf(database.acceptEpoch(Math.max(1, newer)))
      this.extend(other, 1 + random.below(8), Math.max(1, database.epochs.accepted))
      const replace = async (): Promise<void> => {
        await fixture.receiveFrom(other)
        await database.installSnapshot()
        await database.setCurrentEpoch(database.epochs.accepted)
      }
      const allowed = [{ txns: other.txns, atLeast: other.txns.at(-1)!.zxid }, old]
      // Two histories of one epoch cannot differ, since the epoch has one leader.
      if (other.txns.at(-1)!.zxid <= this.last) return { allowed: [old], done: undefined, after() {} }
      return { allowed, done: await errorOf(replace()), after: () => (this.history = other) }
    }
    if (kind === 3) return { allowed: [old], done: await errorOf(database.purge(3)), after() {} }
    return this.#follow(Math.max(1, newer), errorOf)
  }

  async #follow(epoch: number, errorOf: (work: Promise<unknown>) => Promise<unknown>) {
    const { fixture, history } = this
    const { database } = fixture
    const before = this.last
    const accepted = await errorOf(database.acceptEpoch(epoch))
    if (accepted !== undefined)
      return { allowed: [{ txns: history.txns, atLeast: before }], done: accepted, after() {} }
    const next = this.prefix(history.txns.length)
    const txns = this.extend(next, 1 + this.random.below(9), database.epochs.accepted)
    fixture.durableZxid = before
    const role = async (): Promise<void> => {
      const writer = fixture.writer()
      for (const { zxid, payload } of txns) {
        writer.appendPayload(zxid, payload)
        if (this.random.below(3) === 0) await writer.flush()
      }
      for (const { payload } of txns.slice(0, this.random.below(txns.length + 1))) database.apply(payload)
      await database.endRole()
    }
    const done = await errorOf(role())
    return {
      allowed: [{ txns: next.txns, atLeast: fixture.durableZxid }],
      done,
      after: () => (this.history = next),
    }
  }
}

it(`A member has everything that it acknowledged, of one history, in ${RUNS} random runs with crashes`, async () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    const run = await RandomRun.start(seed)
    for (let step = 0; step < 25; step++) {
      try {
        await run.step()
      } catch (error) {
        throw new Error(`Seed ${seed}, step ${step}: ${(error as Error).message}`, { cause: error })
      }
    }
    await run.fixture.database.close()
  }
}, 120_000)
