import { OpCode } from '@zabra/protocol'
import { ManualClock } from '@zabra/runtime'
import { describe, expect, it } from 'vitest'
import { SessionTracker } from '../core/sessions/index.ts'
import { ReadOnlyPipeline } from '../pipeline/index.ts'
import { PipelineFixture } from '../pipeline/testing/pipeline-fixture.ts'
import { RawClient, TestServer } from '../testing/test-server.ts'
import { presentIn, SlicedAnswers } from './sliced-answers.ts'

/** A clock that stands still but for what a test adds to `now`, and the turns of the event loop that are due. */
function stepClock() {
  const due: (() => void)[] = []
  const clock = Object.assign(new ManualClock(), {
    now: 0,
    monotonic: () => clock.now,
    immediate: (action: () => void) => void due.push(action),
  })
  return { clock, due }
}

describe('SlicedAnswers', () => {
  it('gives all answers 2 ms of an iteration of the event loop together, in the order in which they were asked for', async () => {
    const { clock, due } = stepClock()
    const answers = new SlicedAnswers(clock)
    const made: number[] = []
    const all = Array.from({ length: 10 }, (_, i) =>
      answers.run(() => {
        clock.now++
        return made.push(i)
      }),
    )
    const turns = [made.length]
    while (due.length > 0) {
      due.shift()!()
      turns.push(made.length)
    }
    // The turn after the sockets is of the same iteration.
    expect(turns).toEqual([2, 2, 4, 6, 8, 10, 10])
    expect(await Promise.all(all)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
  })

  it('makes eight short answers in an iteration of the event loop', () => {
    const { clock, due } = stepClock()
    const answers = new SlicedAnswers(clock)
    let made = 0
    for (let i = 0; i < 20; i++) void answers.run(() => made++)
    const turns = [made]
    while (due.length > 0) {
      due.shift()!()
      turns.push(made)
    }
    expect(turns).toEqual([8, 8, 16, 20, 20])
  })

  it('ends a chunk after a millisecond, and passes on the failure of an answer to its caller alone', async () => {
    const { clock, due } = stepClock()
    const answers = new SlicedAnswers(clock)
    function* pieces(): Generator<string> {
      for (let i = 0; i < 100; i++) {
        clock.now += 0.0625
        yield 'x'
      }
    }
    const lengths: number[] = []
    const reading = (async () => {
      for await (const chunk of answers.chunksOf(pieces())) lengths.push(chunk.length)
    })()
    const failing = expect(answers.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no')
    const throwing = expect(
      answers.run(() => {
        throw new Error('nor this')
      }),
    ).rejects.toThrow('nor this')
    for (let turn = 0; turn < 100; turn++) {
      due.shift()?.()
      await Promise.resolve()
    }
    await Promise.all([reading, failing, throwing])
    expect(lengths).toEqual([20, 20, 20, 20, 20])
  })

  it('makes answers of long pieces in chunks of 64 KiB, eight of them in an iteration of the event loop', async () => {
    const { clock, due } = stepClock()
    const answers = new SlicedAnswers(clock)
    const piece = 'p'.repeat(16_384)
    const lengths: number[] = []
    const reading = Array.from({ length: 5 }, async () => {
      for await (const chunk of answers.chunksOf(new Array<string>(20).fill(piece)))
        lengths.push(chunk.length)
    })
    await untilMicrotasksEnd()
    const turns = [lengths.length]
    while (due.length > 0) {
      due.shift()!()
      await untilMicrotasksEnd()
      turns.push(lengths.length)
    }
    await Promise.all(reading)
    expect(new Set(lengths)).toEqual(new Set([65_536]))
    expect(lengths).toHaveLength(25)
    expect(Math.max(...turns.map((made, i) => made - (turns[i - 1] ?? 0)))).toBeLessThanOrEqual(8)
  })

  it('makes thirty-two chunks in an iteration of the event loop where many answers end at once', async () => {
    const { clock, due } = stepClock()
    const answers = new SlicedAnswers(clock)
    let ended = 0
    const reading = Array.from({ length: 100 }, async () => {
      for await (const chunk of answers.chunksOf(['', 'the last line'])) expect(chunk).toBe('the last line')
      ended++
    })
    await untilMicrotasksEnd()
    const turns = [ended]
    while (due.length > 0) {
      due.shift()!()
      await untilMicrotasksEnd()
      turns.push(ended)
    }
    await Promise.all(reading)
    // The turn after the sockets is of the same iteration.
    expect(turns).toEqual([32, 32, 64, 96, 100, 100])
  })
})

it('presentIn ends with the last element that was there, though each one that is passed is added again', () => {
  const set = new Set([1, 2, 3])
  const passed: number[] = []
  for (const one of presentIn(set)) {
    passed.push(one)
    set.delete(one)
    set.add(one + 10)
  }
  expect(passed).toEqual([1, 2, 3])
})

/** Runs what needs no later turn of the event loop. */
async function untilMicrotasksEnd(): Promise<void> {
  for (let i = 0; i < 200; i++) await Promise.resolve()
}

/** Makes each look at a clock take half a millisecond. */
function slowDown(clock: ManualClock): void {
  const now = clock.monotonic.bind(clock)
  let passed = 0
  clock.monotonic = () => now() + (passed += 0.5)
}

describe('fifty answers that are asked for at once', () => {
  it.each(['mntr', 'srvr', 'stat', 'cons', 'wchs', 'dump'])(
    'are made over several turns of the event loop: %s',
    async (word) => {
      const fixture = await PipelineFixture.open({
        clock: new ManualClock(),
        sessions: new SessionTracker(1000, 0),
        createPipeline: (context) => new ReadOnlyPipeline(context),
      })
      const { commands, connections } = fixture.clientService
      await fixture.client()
      const [own] = [...connections]
      slowDown(fixture.clock)
      const answered: string[] = []
      for (let i = 0; i < 50; i++)
        void (async () => {
          const chunks: string[] = []
          const answer = commands.execute(word, new Uint8Array(0), own!)
          for await (const chunk of answer as AsyncIterable<string>) chunks.push(chunk)
          answered.push(chunks.join(''))
        })()
      await untilMicrotasksEnd()
      expect(answered.length).toBeLessThan(10)
      await fixture.clock.untilIdle()
      expect(answered.filter((text) => text.length > 20)).toHaveLength(50)
    },
  )

  it.each(['/metrics', '/commands/srvr', '/commands/monitor', '/api/v1/self', '/api/v1/sessions', '/readyz'])(
    'over HTTP are made over several turns too: %s',
    async (path) => {
      const fixture = await TestServer.start({ fourLetterWords: [] })
      slowDown(fixture.clock)
      let answered = 0
      const all = Array.from({ length: 50 }, async () => {
        const { status } = await fixture.http.request(path)
        expect(status).toBe(200)
        answered++
      })
      await untilMicrotasksEnd()
      expect(answered).toBeLessThan(10)
      await fixture.untilIdle()
      await Promise.all(all)
      await fixture.stop()
    },
  )
})

describe('a client that does not read the answer to its command', () => {
  const LONG = '/watched'.repeat(2000)

  async function withManyWatches(): Promise<TestServer> {
    const fixture = await TestServer.start()
    const client = await fixture.connect()
    client.batch(() => {
      for (let i = 1; i <= 500; i++) client.read(i, OpCode.exists, `${LONG}/${i}`, true)
    })
    await fixture.untilIdle()
    return fixture
  }

  it('gets as much of it as fits into the buffer of its connection, and is closed after ten seconds', async () => {
    const fixture = await withManyWatches()
    const reader = await fixture.open()
    reader.send(new TextEncoder().encode('wchp'))
    reader.connection.pause()
    await fixture.untilIdle()
    expect(reader.closed).toBe(false)
    const logged = () => fixture.logLines.map(({ sentence }) => sentence).join()
    expect(logged()).not.toContain('did not read')
    await fixture.advance(10_500)
    expect(logged()).toContain('Closed: it did not read the answer to its command')
    reader.connection.resume()
    await fixture.untilIdle()
    expect(reader.text.length).toBeLessThan(500 * LONG.length * 0.1)
  })

  it('gets all of it once it reads', async () => {
    const fixture = await withManyWatches()
    const slow = new RawClient(fixture, (await fixture.open()).connection)
    slow.send(new TextEncoder().encode('wchp'))
    slow.connection.pause()
    await fixture.untilIdle()
    await fixture.advance(5000)
    slow.connection.resume()
    await fixture.untilIdle()
    expect(slow.text.match(/watched\/\d+\n/g)).toHaveLength(500)
    expect(slow.closed).toBe(true)
  })
})
