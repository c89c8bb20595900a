import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { ChunkPipe } from './chunk-pipe.ts'

const PIECE = 1 << 16
const NEVER = new Promise<never>(() => {})

/** Pushes bytes to a reader that stops after some pieces. Resolves to what it got in each turn, and to the number pushed. */
async function passed(length: number, pieces = Infinity, failure?: Error) {
  const clock = new ManualClock()
  const pipe = new ChunkPipe(clock)
  const turns: number[][] = [[]]
  const immediate = clock.immediate.bind(clock)
  clock.immediate = (action) => {
    turns.push([])
    immediate(action)
  }
  const reading = (async () => {
    for (let i = 0; i < pieces; i++) {
      const { length } = (await pipe.next())!
      turns.at(-1)!.push(length)
    }
    if (failure !== undefined) throw failure
  })()
  const pushing = pipe.push(new Uint8Array(length), reading)
  await clock.untilIdle()
  return { turns, pushed: await pushing }
}

describe('ChunkPipe', () => {
  it('passes bytes in pieces of 64 KiB, each in a turn of its own', async () => {
    expect(await passed(2 * PIECE + 5)).toEqual({ turns: [[PIECE], [PIECE], [5]], pushed: 2 * PIECE + 5 })
    expect(await passed(2 * PIECE)).toEqual({ turns: [[PIECE], [PIECE]], pushed: 2 * PIECE })
    expect(await passed(0)).toEqual({ turns: [[]], pushed: 0 })
  })

  it('passes no more to a reader that has stopped, whether it resolves or rejects', async () => {
    for (const failure of [undefined, new Error('Not a snapshot')]) {
      expect((await passed(3 * PIECE, 2, failure)).pushed).toBe(2 * PIECE)
      expect((await passed(PIECE + 5, 2, failure)).pushed).toBe(PIECE + 5)
      expect((await passed(5, 0, failure)).pushed).toBe(0)
    }
  })

  it('resolves a push once the reader has consumed the bytes', async () => {
    const clock = new ManualClock()
    const pipe = new ChunkPipe(clock)
    const first = pipe.next()
    let isConsumed = false
    const pushing = pipe.push(new Uint8Array(5), NEVER).then(() => (isConsumed = true))
    await first
    await clock.untilIdle()
    expect(isConsumed).toBe(false)
    void pipe.next()
    await pushing
  })

  it('ends the read that waits and each later one', async () => {
    const pipe = new ChunkPipe(new ManualClock())
    const reading = pipe.next()
    pipe.end()
    expect([await reading, await pipe.next()]).toEqual([undefined, undefined])
    const unread = new ChunkPipe(new ManualClock())
    unread.end()
    expect(await unread.next()).toBe(undefined)
  })

  it('has one read at a time', () => {
    const pipe = new ChunkPipe(new ManualClock())
    void pipe.next()
    expect(() => pipe.next()).toThrow('A pipe has one pending read at a time.')
  })
})
