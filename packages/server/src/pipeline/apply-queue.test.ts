import { ErrorCode, OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import type { ErrorTxn, Txn } from '../core/types.ts'
import type { AcceptedWrite, WriteCallback } from './types.ts'
import { ApplyQueue, type ApplyQueueOptions } from './apply-queue.ts'
import { InFlightWrite } from './in-flight-write.ts'

const FAILURE: ErrorTxn = { type: OpCode.error, err: ErrorCode.NONODE }

/** Entries that only fail, so that all that happens is their order. Each takes so many milliseconds. */
class World {
  readonly clock = new ManualClock()
  /** What was applied, turn by turn. */
  readonly turns: number[][] = [[]]
  readonly application: ApplyQueue<never>
  readonly tree = new Tree({ digest: false, extendedTypes: true })
  readonly #requester: WriteCallback
  #deferred: (() => void)[] = []

  constructor(eachMs: number, count: number) {
    this.application = new ApplyQueue({
      tree: this.tree,
      watchNotifier: { zxid: -1 },
      clock: this.clock,
      defer: (action: () => void) => this.#deferred.push(action),
      preparer: { forgetApplied: () => true },
      lastZxid: 0,
      applySession: () => {},
    } as unknown as ApplyQueueOptions<never>)
    this.#requester = {
      onPart() {},
      onApplied: ({ logged }: AcceptedWrite) => {
        this.turns.at(-1)!.push(logged.header.zxid)
        this.clock.advance(eachMs)
      },
    } as unknown as WriteCallback
    for (let zxid = 1; zxid <= count; zxid++) this.#push(zxid, FAILURE)
  }

  /** A transaction that is applied in several turns. */
  pushLarge(zxid: number): void {
    this.#push(zxid, { type: OpCode.multi, txns: Array<ErrorTxn>(2000).fill(FAILURE) })
  }

  #push(zxid: number, txn: Txn): void {
    const prepared = { txn, digest: undefined, node: undefined, crc: 0 }
    this.application.enqueue(
      new InFlightWrite(
        { sessionId: 1n, xid: zxid, type: OpCode.create },
        zxid,
        0,
        prepared,
        this.#requester,
        0,
      ),
    )
  }

  /** How many later turns wait. */
  get waiting(): number {
    return this.#deferred.length
  }

  next(): void {
    this.turns.push([])
    this.#deferred.shift()?.()
  }

  get lengths(): number[] {
    return this.turns.map((turn) => turn.length)
  }
}

it('applies five hundred in a turn, in their order', () => {
  const world = new World(0, 1100)
  world.application.commit(1100)
  while (world.waiting > 0) world.next()
  expect(world.lengths).toEqual([500, 500, 100])
  expect(world.turns.flat()).toEqual(Array.from({ length: 1100 }, (_, at) => at + 1))
})

it('applies fewer where they take time', () => {
  const world = new World(0.5, 40)
  world.application.commit(40)
  while (world.waiting > 0) world.next()
  expect(world.lengths).toEqual([15, 15, 10])
})

it('goes on in one row of turns, whatever is committed meanwhile', () => {
  const world = new World(0, 2000)
  world.application.commit(600)
  world.application.commit(1900)
  world.application.commit(2000)
  expect([world.lengths, world.waiting]).toEqual([[500], 1])
  while (world.waiting > 0) world.next()
  expect(world.lengths).toEqual([500, 500, 500, 500])
})

it('applies all that is committed at once where it is told to', () => {
  const world = new World(1, 1200)
  world.application.commit(1200)
  world.application.drain()
  expect(world.lengths).toEqual([1200])
  while (world.waiting > 0) world.next()
  expect(world.turns.flat()).toHaveLength(1200)
  expect(world.application.isBusy).toBe(false)
})

it('tells who waits for a transaction of a whole tree, though a large one comes right behind', () => {
  const world = new World(0, 1)
  for (const zxid of [2, 3, 4]) world.pushLarge(zxid)
  const told: string[] = []
  for (const after of [1, 2, 4])
    world.application.notifyWhenApplied(after, () =>
      told.push(
        `${after} behind ${world.turns.flat().at(-1)}, ${world.tree.isApplying ? 'halfway' : 'whole'}`,
      ),
    )
  world.application.commit(4)
  while (world.waiting > 0) world.next()
  expect(told).toEqual(['1 behind 2, whole', '2 behind 2, whole', '4 behind 4, whole'])
})
