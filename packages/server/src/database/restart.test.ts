import { MemoryDisk, SeededRandom } from '@zabra/runtime'
import { counterOf, epochOf } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { RawTxn } from '../persistence/index.ts'
import { LeaderHistory, DatabaseFixture, same, zxidOf } from './testing/database-fixture.ts'

const RUNS = 150
const SETTINGS = { txnLogSizeLimitBytes: 700, snapCount: 1000 }

/** What a member must have: everything of one history up to some point, and at least what it has acknowledged. */
interface Claim {
  readonly txns: readonly RawTxn[]
  readonly atLeast: number
}

/** One member whose leaders come and go, and whose power may. */
class Life {
  readonly random: SeededRandom
  rig: DatabaseFixture
  /** Names of nodes differ from history to history, so that one is never taken for another. */
  #branch = 0
  history: LeaderHistory = new LeaderHistory()

  private constructor(seed: number, rig: DatabaseFixture) {
    this.random = new SeededRandom(seed)
    this.rig = rig
  }

  static async begin(seed: number): Promise<Life> {
    const rig = await DatabaseFixture.open(new MemoryDisk(), SETTINGS)
    return new Life(seed, rig)
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

  /** One thing that happens; a crash comes in the middle of it, or not at all. Returns what may be left. */
  async step(): Promise<void> {
    const { random } = this
    const kind = random.below(5)
    const crashes = random.below(3) === 0
    let calls = 0
    const at = random.below(40)
    if (crashes)
      this.rig.disk.injectFault = (call) =>
        call !== 'read' && calls++ >= at ? { code: 'EIO', writtenBytes: random.below(600) } : undefined
    const { claims, done, after } = await this.#happen(kind)
    if (crashes) {
      await this.rig.crash(random.below(2) === 0)
      await this.rig.open()
      this.#settleFor(claims)
    } else {
      expect(done).toBeUndefined()
      after()
      this.#settleFor([{ txns: this.history.txns, atLeast: this.last }])
    }
  }

  /** The member must have one of the histories; that one goes on. */
  #settleFor(claims: readonly Claim[]): void {
    const { vault } = this.rig
    for (const { txns, atLeast } of claims) {
      const count = txns.filter(({ zxid }) => zxid <= vault.lastZxid).length
      const found = new LeaderHistory()
      for (const { zxid, payload } of txns.slice(0, count)) found.replay(zxid, payload)
      const isThis = (found.txns.at(-1)?.zxid ?? 0) === vault.lastZxid && same(found.tree, vault.tree)
      if (!isThis || vault.lastZxid < atLeast) continue
      this.history = found
      return
    }
    const had = claims.map(
      ({ txns, atLeast }) => `${txns.at(-1)?.zxid.toString(16)} from ${atLeast.toString(16)} on`,
    )
    throw new Error(
      `Expected ${had.join(' or ')}, got ${vault.lastZxid.toString(16)} with ${this.rig.nodes().join(' ')}`,
    )
  }

  async #happen(kind: number): Promise<{ claims: Claim[]; done: unknown; after: () => void }> {
    const { rig, random, history } = this
    const { vault } = rig
    const old: Claim = { txns: history.txns, atLeast: this.last }
    const failed = (work: Promise<unknown>): Promise<unknown> =>
      work.then(
        () => undefined,
        (error: unknown) => error,
      )
    const newer = Math.max(epochOf(this.last), vault.epochs.accepted) + random.below(2)
    if (kind === 0) return { claims: [old], done: await failed(vault.takeSnapshot([])), after() {} }
    if (kind === 1 && history.txns.length > 2) {
      const count = 1 + random.below(history.txns.length - 1)
      const shorter = this.prefix(count)
      const target = shorter.txns.at(-1)!.zxid
      let exact = true
      const work = vault.truncateTo(target).then((result) => (exact = result.exact))
      const claims = [{ txns: history.txns, atLeast: target }]
      return { claims, done: await failed(work), after: () => void (exact && (this.history = shorter)) }
    }
    if (kind === 2) {
      const other = this.prefix(random.below(history.txns.length + 1))
      await failed(vault.acceptEpoch(Math.max(1, newer)))
      this.extend(other, 1 + random.below(8), Math.max(1, vault.epochs.accepted))
      const replace = async (): Promise<void> => {
        await rig.receive(other)
        await vault.installSnapshot()
        await vault.setCurrentEpoch(vault.epochs.accepted)
      }
      const claims = [{ txns: other.txns, atLeast: other.txns.at(-1)!.zxid }, old]
      // A fork of the same epoch cannot be; its leader is one.
      if (other.txns.at(-1)!.zxid <= this.last) return { claims: [old], done: undefined, after() {} }
      return { claims, done: await failed(replace()), after: () => (this.history = other) }
    }
    if (kind === 3) return { claims: [old], done: await failed(vault.purge(3)), after() {} }
    return this.#follow(Math.max(1, newer), failed)
  }

  async #follow(
    epoch: number,
    failed: (work: Promise<unknown>) => Promise<unknown>,
  ): Promise<{ claims: Claim[]; done: unknown; after: () => void }> {
    const { rig, history } = this
    const { vault } = rig
    const before = this.last
    const accepted = await failed(vault.acceptEpoch(epoch))
    if (accepted !== undefined)
      return { claims: [{ txns: history.txns, atLeast: before }], done: accepted, after() {} }
    const next = this.prefix(history.txns.length)
    const txns = this.extend(next, 1 + this.random.below(9), vault.epochs.accepted)
    rig.durable = before
    const role = async (): Promise<void> => {
      const writer = rig.writer()
      for (const { zxid, payload } of txns) {
        writer.appendPayload(zxid, payload)
        if (this.random.below(3) === 0) await writer.flush()
      }
      for (const { payload } of txns.slice(0, this.random.below(txns.length + 1))) vault.apply(payload)
      await vault.endRole()
    }
    const done = await failed(role())
    return { claims: [{ txns: next.txns, atLeast: rig.durable }], done, after: () => (this.history = next) }
  }
}

it(`A member has all it acknowledged of one history, in ${RUNS} random lives with crashes`, async () => {
  for (let seed = 1; seed <= RUNS; seed++) {
    const life = await Life.begin(seed)
    for (let step = 0; step < 25; step++) {
      try {
        await life.step()
      } catch (error) {
        throw new Error(`Seed ${seed}, step ${step}: ${(error as Error).message}`, { cause: error })
      }
    }
    await life.rig.vault.close()
  }
}, 120_000)
