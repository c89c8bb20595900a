import { ErrorCode, OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { Tree } from '../../core/tree/index.ts'
import type { Entry, Requester } from './contract.ts'
import { Application, type ApplicationParts } from './application.ts'
import { Flight } from './flight.ts'

/** Entries that only fail, so that all that happens is their order. Each takes so many milliseconds. */
class World {
  readonly clock = new ManualClock()
  /** What was applied, turn by turn. */
  readonly turns: number[][] = [[]]
  readonly application: Application<never>
  #later: (() => void)[] = []

  constructor(eachMs: number, count: number) {
    this.application = new Application({
      tree: new Tree({ digest: false, extendedTypes: true }),
      firing: { zxid: -1 },
      clock: this.clock,
      later: (action: () => void) => this.#later.push(action),
      preparer: { committed: () => true },
      hasQuorum: false,
      lastZxid: 0,
      sessions: () => {},
    } as unknown as ApplicationParts<never>)
    const requester = {
      applied: ({ logged }: Entry) => {
        this.turns.at(-1)!.push(logged.header.zxid)
        this.clock.advance(eachMs)
      },
    } as unknown as Requester
    const txn = { type: OpCode.error, err: ErrorCode.NONODE } as const
    const prepared = { txn, digest: undefined, place: undefined, crc: 0 }
    for (let zxid = 1; zxid <= count; zxid++)
      this.application.push(new Flight(1n, zxid, OpCode.create, zxid, 0, prepared, requester, 0))
  }

  /** How many later turns wait. */
  get waiting(): number {
    return this.#later.length
  }

  next(): void {
    this.turns.push([])
    this.#later.shift()?.()
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
  world.application.finish()
  expect(world.lengths).toEqual([1200])
  while (world.waiting > 0) world.next()
  expect(world.turns.flat()).toHaveLength(1200)
  expect(world.application.busy).toBe(false)
})
