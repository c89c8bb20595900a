import { describe, expect, it } from 'vitest'
import { ConcurrencyLimiter } from './concurrency-limiter.ts'
import { visitConcurrently } from './visit-concurrently.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('visitConcurrently', () => {
  it('visits all returned items, with limited concurrency', async () => {
    let running = 0
    let most = 0
    const seen: number[] = []
    await visitConcurrently(1, 3, async (item) => {
      most = Math.max(most, ++running)
      await turn()
      running--
      seen.push(item)
      return item < 32 ? [item * 2, item * 2 + 1] : []
    })
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 63 }, (_, n) => n + 1))
    expect(most).toBe(3)
  })

  it('rejects with the first failure and starts nothing after it', async () => {
    let visits = 0
    const spreading = visitConcurrently(0, 2, async (item) => {
      visits++
      await turn()
      if (item === 1) throw new Error('one')
      return item === 0 ? [3, 2, 1] : [4]
    })
    await expect(spreading).rejects.toThrow('one')
    await turn()
    expect(visits).toBe(3)
  })
})

describe('ConcurrencyLimiter', () => {
  it('runs a limited number of calls at a time in order of arrival, for any number of calls', async () => {
    const limiter = new ConcurrencyLimiter(2)
    const order: number[] = []
    let inside = 0
    const all = Array.from({ length: 5000 }, (_, n) =>
      limiter.run(async () => {
        expect(++inside).toBeLessThanOrEqual(2)
        order.push(n)
        await Promise.resolve()
        inside--
      }),
    )
    await Promise.all(all)
    expect(order).toEqual(Array.from({ length: 5000 }, (_, n) => n))
    let isRunning = false
    const next = limiter.run(async () => void (isRunning = true))
    expect(isRunning).toBe(true)
    await next
  })

  it('starts the next call when one fails', async () => {
    const limiter = new ConcurrencyLimiter(1)
    const failed = limiter.run(() => Promise.reject(new Error('no')))
    const next = limiter.run(() => Promise.resolve(7))
    await expect(failed).rejects.toThrow('no')
    expect(await next).toBe(7)
  })
})
