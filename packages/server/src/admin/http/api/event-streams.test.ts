import { ManualClock, silentLogger } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { EventLogger } from '../../../logging/index.ts'
import { EventStreams, type StreamOptions } from './event-streams.ts'

let clock: ManualClock
let logger: EventLogger
let streams: EventStreams

beforeEach(() => {
  clock = new ManualClock()
  logger = new EventLogger(silentLogger, clock)
  streams = new EventStreams(logger.events, clock, 60_000)
})

const open = (options: Partial<StreamOptions> = {}): AsyncIterableIterator<string> =>
  streams.open({ after: undefined, follows: true, includes: () => true, ...options })!

/** Logs events that are not alike. */
const log = (count: number): void => {
  for (let i = 0; i < count; i++) {
    logger.info({ i }, 'Looking for a leader')
    // The window of lines that are alike is a minute.
    clock.advance(60_000)
  }
}

const next = async (stream: AsyncIterableIterator<string>): Promise<string> =>
  String((await stream.next()).value)

/** Returns the fields `i` and `lost` of the events in a text. */
const seen = (text: string): unknown[] =>
  [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => {
    const { id, i, lost } = JSON.parse(json!) as Record<string, unknown>
    return id === 'events.lost' ? { lost } : i
  })

const numbersIn = (text: string): number[] => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id))

describe('a stream', () => {
  it('begins with the events that are kept, and goes on with those to come', async () => {
    log(2)
    const stream = open()
    expect(seen(await next(stream))).toEqual([0, 1])
    const later = next(stream)
    logger.warn({ i: 7 }, 'Another error occurred while a role was ending')
    const [event, data, ...rest] = (await later).split('\n').slice(1)
    expect(event).toBe('event: server.second-error')
    expect(JSON.parse(data!.slice('data: '.length))).toEqual({
      time: new Date(clock.wall()).toISOString(),
      level: 'warn',
      id: 'server.second-error',
      part: 'server',
      i: 7,
      msg: 'Another error occurred while a role was ending',
    })
    expect(rest).toEqual(['', ''])
  })

  it('continues after the event that its reader has', async () => {
    log(3)
    const numbers = numbersIn(await next(open()))
    expect(numbers.map((number) => number - numbers[0]!)).toEqual([0, 1, 2])
    expect(seen(await next(open({ after: numbers[1] })))).toEqual([2])
  })

  it('says how many events its reader has missed that are not kept any more', async () => {
    log(1)
    const [first] = numbersIn(await next(open()))
    log(515)
    const stream = open({ after: first })
    expect(seen(await next(stream)).slice(0, 2)).toEqual([{ lost: 3 }, 3])
  })

  it.each([
    ['an earlier process', -1],
    ['a later process', 1_000_000],
    ['another kind of server', Number.NaN],
  ])(
    'says that it cannot continue after an event of %s, and begins with the oldest one',
    async (_, offset) => {
      log(1)
      const after = clock.wall() * 1000 + offset * 1_000_000
      const text = await next(open({ after }))
      expect(seen(text)).toEqual([{ lost: null }, 0])
      const [lost, oldest] = numbersIn(text)
      expect(oldest! - lost!).toBe(1)
    },
  )

  it('of a process that starts a millisecond later has greater numbers', async () => {
    log(20)
    const numbers = numbersIn(await next(open()))
    const later = new EventLogger(silentLogger, new ManualClock({ wall: 1_700_000_000_001 }))
    expect(later.events.newest).toBeGreaterThan(numbers.at(-1)!)
    expect(later.events.has(numbers.at(-1)!)).toBe(false)
  })

  it('whose reader is slow holds one chunk, and goes on with what is kept when it is read again', async () => {
    const stream = open()
    expect(seen(await next(stream))).toEqual([])
    const padding = 'x'.repeat(3000)
    for (let i = 0; i < 600; i++) {
      logger.info({ i, padding }, 'Looking for a leader')
      clock.advance(60_000)
    }
    const chunk = await next(stream)
    expect(chunk.length).toBeLessThan(24_000)
    expect(seen(chunk).slice(0, 2)).toEqual([{ lost: 88 }, 88])
    const all = [chunk]
    while (numbersIn(all.at(-1)!).at(-1) !== logger.events.newest) all.push(await next(stream))
    expect(seen(all.join('')).length).toBe(1 + 512)
  })

  it('sends a comment with its place each 15 s without events, which moves a reader on that wants none of them', async () => {
    const stream = open({ includes: () => false })
    await next(stream)
    let text = ''
    void next(stream).then((chunk) => (text = chunk))
    logger.info({}, 'Looking for a leader')
    await clock.untilIdle()
    clock.advance(14_999)
    await clock.untilIdle()
    expect(text).toBe('')
    clock.advance(1)
    await clock.untilIdle()
    expect(text).toBe(`:\nid: ${logger.events.newest}\n\n`)
  })

  it('sends comments twice as often as the port closes connections without traffic', async () => {
    streams = new EventStreams(logger.events, clock, 1000)
    const stream = open()
    await next(stream)
    const later = next(stream)
    await clock.untilIdle()
    clock.advance(500)
    expect(await later).toMatch(/^:\n/)
  })

  it('ends after the events that there are when it does not follow', async () => {
    log(2)
    const stream = open({ follows: false })
    expect(seen(await next(stream))).toEqual([0, 1])
    log(1)
    expect(await stream.next()).toEqual({ done: true, value: undefined })
    expect(streams.size).toBe(0)
  })

  it('ends when the streams are closed, after the events that were not sent, and leaves no timer', async () => {
    const stream = open()
    await next(stream)
    const [later, end] = [next(stream), stream.next()]
    await clock.untilIdle()
    logger.info({ i: 0 }, 'Looking for a leader')
    streams.close()
    expect(seen(await later)).toEqual([0])
    expect(await end).toEqual({ done: true, value: undefined })
    expect(clock.pendingTimers()).toEqual([])
    expect(seen(await next(open()))).toEqual([0])
  })
})

it('no more than 32 streams are open at a time, and one that is returned makes room', async () => {
  const all = Array.from({ length: 32 }, () => open())
  await Promise.all(all.map(next))
  expect(streams.open({ after: undefined, follows: true, includes: () => true })).toBeUndefined()
  await all[0]!.return!()
  expect(streams.size).toBe(31)
  expect(open()).toBeDefined()
})

it.each(['has not been read', 'waits for an event'])(
  'a stream that %s ends at once when its reader leaves',
  async (state) => {
    const stream = open()
    const pending: Promise<IteratorResult<string>>[] = []
    if (state === 'waits for an event') {
      await next(stream)
      pending.push(stream.next())
      await clock.untilIdle()
    }
    const done = { done: true, value: undefined }
    expect(await stream.return!()).toEqual(done)
    for (const result of pending) expect(await result).toEqual(done)
    expect(streams.size).toBe(0)
    expect(clock.pendingTimers()).toEqual([])
  },
)
