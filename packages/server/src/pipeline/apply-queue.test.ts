import { ErrorCode, OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { Tree } from '../core/tree/index.ts'
import type { ErrorTxn, Txn } from '../core/types.ts'
import { WriteStages } from '../core/write-stages.ts'
import type { AcceptedWrite, WriteCallback } from './types.ts'
import { ApplyQueue, type ApplyQueueOptions } from './apply-queue.ts'
import { InFlightWrite } from './in-flight-write.ts'

const FAILURE: ErrorTxn = { type: OpCode.error, err: ErrorCode.NONODE }

/** A queue of writes that are error transactions, so that only their order matters. Each takes `eachMs` milliseconds. */
class QueueFixture {
  readonly clock = new ManualClock()
  /** The zxids applied in each turn. */
  readonly turns: number[][] = [[]]
  readonly queue: ApplyQueue<never>
  readonly tree = new Tree({ digest: false, extendedTypes: true })
  readonly #callback: WriteCallback
  #deferred: (() => void)[] = []
  readonly #notifier = { zxid: -1, ancestorsVisited: 0 }

  constructor(eachMs: number, count: number, ancestors = 0, txn: Txn = FAILURE) {
    this.queue = new ApplyQueue({
      tree: this.tree,
      watchNotifier: this.#notifier,
      clock: this.clock,
      defer: (action: () => void) => this.#deferred.push(action),
      hasDeferredReads: () => false,
      stages: new WriteStages(),
      preparer: { forgetApplied: () => true },
      lastZxid: 0,
      applySession: () => {},
    } as unknown as ApplyQueueOptions<never>)
    this.#callback = {
      onPart() {},
      onApplied: ({ logged }: AcceptedWrite) => {
        this.turns.at(-1)!.push(logged.header.zxid)
        this.clock.advance(eachMs)
        this.#notifier.ancestorsVisited += ancestors
      },
    } as unknown as WriteCallback
    for (let zxid = 1; zxid <= count; zxid++) this.#push(zxid, txn)
  }

  /** Adds a transaction that is applied in several turns. */
  pushLarge(zxid: number): void {
    this.#push(zxid, { type: OpCode.multi, txns: Array<ErrorTxn>(2000).fill(FAILURE) })
  }

  #push(zxid: number, txn: Txn): void {
    const prepared = { txn, digest: undefined, node: undefined, crc: 0 }
    this.queue.enqueue(
      new InFlightWrite({ sessionId: 1n, xid: zxid, type: OpCode.create }, zxid, 0, prepared, this.#callback),
    )
  }

  /** Counts the deferred turns. */
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

it('ApplyQueue applies five hundred transactions in a turn, in order', () => {
  const fixture = new QueueFixture(0, 1100)
  fixture.queue.commit(1100)
  while (fixture.waiting > 0) fixture.next()
  expect(fixture.lengths).toEqual([500, 500, 100])
  expect(fixture.turns.flat()).toEqual(Array.from({ length: 1100 }, (_, at) => at + 1))
})

it('ApplyQueue applies fewer in a turn when they take long', () => {
  const fixture = new QueueFixture(0.5, 40)
  fixture.queue.commit(40)
  while (fixture.waiting > 0) fixture.next()
  expect(fixture.lengths).toEqual([7, 7, 7, 7, 7, 5])
})

it('ApplyQueue applies one transaction below many watched ancestors in an iteration of the event loop', () => {
  const fixture = new QueueFixture(3, 4, 5000)
  fixture.queue.commit(4)
  while (fixture.waiting > 0) fixture.next()
  // The first turn after each may be in the same iteration.
  expect(fixture.lengths).toEqual([1, 0, 1, 0, 1, 0, 1])
})

it('ApplyQueue applies one transaction with a path of 4,096 characters in an iteration of the event loop', () => {
  const path = `/${'d'.repeat(4095)}`
  const fixture = new QueueFixture(3, 3, 0, { type: OpCode.delete, path })
  fixture.queue.commit(3)
  while (fixture.waiting > 0) fixture.next()
  expect(fixture.lengths).toEqual([1, 0, 1, 0, 1])
})

it('ApplyQueue schedules one later turn at a time, whatever is committed meanwhile', () => {
  const fixture = new QueueFixture(0, 2000)
  fixture.queue.commit(600)
  fixture.queue.commit(1900)
  fixture.queue.commit(2000)
  expect([fixture.lengths, fixture.waiting]).toEqual([[500], 1])
  while (fixture.waiting > 0) fixture.next()
  expect(fixture.lengths).toEqual([500, 500, 500, 500])
})

it('ApplyQueue applies what is durable over several turns, without the writes after it, when the disk is full', () => {
  const fixture = new QueueFixture(0, 1900)
  expect(fixture.queue.discardAfter(1200)).toHaveLength(700)
  expect([fixture.lengths, fixture.queue.isBusy]).toEqual([[500], true])
  while (fixture.waiting > 0) fixture.next()
  expect(fixture.lengths).toEqual([500, 500, 200])
  expect(fixture.queue.isBusy).toBe(false)
})

it('ApplyQueue releases a hundred syncs in a turn, in order', () => {
  const fixture = new QueueFixture(0, 1)
  const released: number[][] = [[]]
  for (let sync = 0; sync < 250; sync++) fixture.queue.notifyWhenApplied(1, () => released.at(-1)!.push(sync))
  fixture.queue.commit(1)
  while (fixture.waiting > 0) {
    released.push([])
    fixture.next()
  }
  expect(released.map((turn) => turn.length)).toEqual([100, 100, 50])
  expect(released.flat()).toEqual(Array.from({ length: 250 }, (_, sync) => sync))
})

it('ApplyQueue releases a sync while the tree is consistent, though a large transaction follows', () => {
  const fixture = new QueueFixture(0, 1)
  for (const zxid of [2, 3, 4]) fixture.pushLarge(zxid)
  const released: string[] = []
  for (const after of [1, 2, 4])
    fixture.queue.notifyWhenApplied(after, () =>
      released.push(
        `${after} behind ${fixture.turns.flat().at(-1)}, ${fixture.tree.isApplying ? 'inconsistent' : 'consistent'}`,
      ),
    )
  fixture.queue.commit(4)
  while (fixture.waiting > 0) fixture.next()
  expect(released).toEqual(['1 behind 2, consistent', '2 behind 2, consistent', '4 behind 4, consistent'])
})
