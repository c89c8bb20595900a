import { describe, expect, it } from 'vitest'
import { choose, runLength } from './decide.ts'
import { queueLayout } from './names.ts'
import { ServerClock } from '../support/server-clock.ts'

const own = queueLayout('/q', 'recipe')
const kazoo = queueLayout('/q', 'kazoo')
const none: ReadonlySet<string> = new Set()
const names = (items: readonly { name: string }[]): string[] => items.map(({ name }) => name)

describe('item names', () => {
  it('round-trip priority, due time and sequence number', () => {
    const name = `${own.prefix({ priority: -5, due: 1_700_000_000_123 })}0000000042`
    expect(name).toBe('queue-7ffffffb-18bcfe5687b-0000000042')
    expect(own.parse(name)).toMatchObject({ name, priority: -5, due: 1_700_000_000_123, sequence: 42 })
  })

  it('round-trip an id of any text', () => {
    for (const id of ['order/7', '-', '', 'a-0000000001', '='])
      expect(own.parse(`${own.prefix({ id, due: 5 })}0000000042`)).toMatchObject({ id, due: 5, sequence: 42 })
    expect(own.parse(`${own.prefix({})}0000000042`)?.id).toBeUndefined()
  })

  it('of Curator have a sign and eight digits, or no priority', () => {
    const curator = queueLayout('/q', 'curator')
    expect(curator.items).toBe('/q')
    expect([curator.prefix({}), curator.prefix({ priority: 5 }), curator.prefix({ priority: -2 })]).toEqual([
      'queue-',
      'queue-100000005',
      'queue-0FFFFFFFE',
    ])
    expect(curator.parse('queue-0FFFFFFFE0000000007')).toMatchObject({ priority: -2, sequence: 7 })
    expect(curator.parse('queue-0000000007')).toMatchObject({ priority: 0, sequence: 7 })
    expect(curator.parse('queue-100000005')).toBeUndefined()
    expect(() => curator.prefix({ id: 'x' })).toThrow('no id')
  })

  it('of the ZooKeeper recipes page have the middle priority', () => {
    expect(own.parse('queue-0000000007')).toMatchObject({ priority: 0, due: 0, sequence: 7 })
  })

  it('wrap around to negative sequence numbers', () => {
    expect(own.parse(`${own.prefix({ priority: 0 })}-2147483648`)).toMatchObject({ sequence: -2147483648 })
    expect(own.parse(`${own.prefix({ priority: 0 })}-000000001`)).toMatchObject({ sequence: -1 })
  })

  it('of other programs are ignored', () => {
    expect([own.parse('entry-100-0000000001'), own.parse('x'), kazoo.parse('queue-0000000001')]).toEqual([
      undefined,
      undefined,
      undefined,
    ])
  })

  it("of kazoo's plain queue are directly below its path", () => {
    const plain = queueLayout('/q', 'kazooPlain')
    expect([plain.items, plain.claims, plain.prefix({})]).toEqual(['/q', '/q.queue/claims', 'entry-100-'])
    expect(() => queueLayout('/', 'kazooPlain')).toThrow('below the root')
  })

  it('of kazoo allow priorities from 0 to 999 and no delays', () => {
    expect(kazoo.prefix({})).toBe('entry-100-')
    expect(kazoo.parse('entry-007-0000000003')).toMatchObject({ priority: 7, sequence: 3 })
    expect(() => kazoo.prefix({ priority: 1000 })).toThrow('0 to 999')
    expect(() => kazoo.prefix({ priority: 1, due: 5 })).toThrow('no delay')
    expect(() => own.prefix({ priority: 2 ** 31 })).toThrow('32 bits')
  })
})

describe('choose', () => {
  const item = (priority: number, sequence: number, due?: number): string =>
    `${own.prefix({ priority, due })}${String(sequence).padStart(10, '0')}`

  it('orders by priority and then by age, negative priorities first', () => {
    const list = [item(1, 1), item(0, 3), item(-1, 4), item(0, 2), 'foreign']
    expect(names(choose(list, none, 0, own.parse).ready)).toEqual([
      item(-1, 4),
      item(0, 2),
      item(0, 3),
      item(1, 1),
    ])
  })

  it('treats wrapped sequence numbers as newer', () => {
    const [before, after] = [
      `${own.prefix({ priority: 0 })}2147483647`,
      `${own.prefix({ priority: 0 })}-2147483648`,
    ]
    expect(names(choose([after, before], none, 0, own.parse).ready)).toEqual([before, after])
  })

  it('skips claimed items and items that are not due', () => {
    const list = [item(0, 1), item(0, 2, 500), item(0, 3, 300), item(0, 4, 100)]
    const choice = choose(list, new Set([item(0, 1)]), 100, own.parse)
    expect(choice).toMatchObject({ nextDue: 300 })
    expect(names(choice.ready)).toEqual([item(0, 4, 100)])
  })

  it('orders items that become due together by sequence number', () => {
    const list = [item(0, 9, 100), item(0, 8, 100)]
    expect(names(choose(list, none, 100, own.parse).ready)).toEqual([item(0, 8, 100), item(0, 9, 100)])
  })

  it('lists again after each item of a short listing, and seldom for a long one', () => {
    expect([1, 64, 100, 10_000].map(runLength)).toEqual([1, 1, 10, 100])
  })
})

describe('the server clock', () => {
  it('is off by half a round trip at most, whatever the local wall clock is', () => {
    let local = 1000
    const clock = new ServerClock({ monotonic: () => local })
    expect(clock.now()).toBeUndefined()
    const sentAt = local
    local += 40
    clock.observe(5_000_000 + 10, sentAt)
    expect(Math.abs(clock.now()! - 5_000_040)).toBeLessThanOrEqual(20)
  })

  it('keeps the better of two measurements until it is outdated', () => {
    let local = 0
    const clock = new ServerClock({ monotonic: () => local })
    clock.observe(100, 0)
    local = 1000
    clock.observe(5000, 0)
    expect(clock.now()).toBe(1100)
    local = 400_000
    clock.observe(500_000, 399_000)
    expect(clock.now()).toBe(500_500)
  })
})
