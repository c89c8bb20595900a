import { Writer } from '@zabra/protocol'
import { ManualClock, MemoryNetwork, type Connection } from '@zabra/runtime'
import { describe, expect, it, vi } from 'vitest'
import { PacketType, writePacket } from '../core/zab/index.ts'
import { ElectionConnection } from './election-connection.ts'
import { ReadScheduler } from './read-scheduler.ts'
import { learnerOn } from './testing/learner.ts'

const MESSAGES = 1000

/** A connection whose other end sends bytes, on a clock on which every message takes a tenth of a millisecond. */
async function fixture() {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  let now = 0
  vi.spyOn(clock, 'monotonic').mockImplementation(() => now)
  let sender!: Connection
  await network.listen({ port: 1 }, (connection) => {
    sender = connection
    connection.setHandler({ data() {}, drain() {}, closed() {} })
  })
  const connection = await network.connect({ host: 'x', port: 1 })
  /** How many messages each turn has processed. */
  const turns: number[] = []
  let inTurn = 0
  return {
    clock,
    connection,
    sender,
    turns,
    process: (): void => {
      now += 0.1
      if (inTurn++ === 0)
        clock.immediate(() => {
          turns.push(inTurn)
          inTurn = 0
        })
    },
  }
}

function packets(count: number, type: number = PacketType.ack): Uint8Array {
  const writer = new Writer()
  for (let i = 0; i < count; i++) writePacket(writer, type, i)
  return writer.take()
}

const total = (turns: readonly number[]): number => turns.reduce((sum, count) => sum + count, 0)

describe('many messages at once', () => {
  it('of a learner are processed over several turns, in order', async () => {
    const { clock, connection, sender, turns, process } = await fixture()
    const zxids: number[] = []
    const packet = (_: number, zxid: number): void => {
      zxids.push(zxid)
      process()
    }
    learnerOn(connection, clock, { packet })
    sender.write(packets(MESSAGES))
    await clock.untilIdle()
    expect(zxids).toEqual(Array.from({ length: MESSAGES }, (_, i) => i))
    expect(total(turns)).toBe(MESSAGES)
    expect(Math.max(...turns)).toBeLessThan(70)
  })

  it('of a learner are processed up to half a megabyte in a turn', async () => {
    const { clock, connection, sender, turns, process } = await fixture()
    learnerOn(connection, clock, { packet: process }).send(PacketType.upToDate, -1)
    const writer = new Writer()
    for (let i = 0; i < 10; i++) writePacket(writer, PacketType.request, -1, new Uint8Array(300_000))
    sender.write(writer.take())
    await clock.untilIdle()
    expect(turns).toEqual([2, 2, 2, 2, 2])
  })

  it('of a server that no configuration names have a sixteenth of the time of a member', async () => {
    const { clock, connection, sender, turns, process } = await fixture()
    learnerOn(connection, clock, { packet: process, isNamed: false })
    sender.write(packets(MESSAGES))
    await clock.untilIdle()
    expect(total(turns)).toBe(MESSAGES)
    expect(Math.max(...turns)).toBeLessThan(17)
  })

  it('of a server that no configuration names are read up to half a megabyte in a turn, also parts of one that never ends', async () => {
    const { clock, connection, sender } = await fixture()
    learnerOn(connection, clock, { isNamed: false }).send(PacketType.upToDate, -1)
    const writer = new Writer()
    writePacket(writer, PacketType.request, -1, new Uint8Array(2_000_000))
    let pauses = 0
    const pause = connection.pause.bind(connection)
    connection.pause = () => (pauses++, pause())
    sender.write(writer.take().subarray(0, 1_900_000))
    await clock.untilIdle()
    expect(pauses).toBe(3)
  })

  it.each([
    [true, 40],
    [false, 17],
  ])(
    'at the election port are processed over several turns (of a named server: %s)',
    async (isNamed, most) => {
      const { clock, connection, sender, turns, process } = await fixture()
      const events = { isNamed: () => isNamed, received: process, drained() {}, lost() {} }
      new ElectionConnection(connection, clock, events)
      sender.write(Uint8Array.from(Array.from({ length: MESSAGES }, () => [0, 0, 0, 1, 7]).flat()))
      await clock.untilIdle()
      expect(total(turns)).toBe(MESSAGES)
      expect(Math.max(...turns)).toBeLessThan(most)
    },
  )

  it('of a learner that end in a malformed packet close its connection', async () => {
    const { clock, connection, sender, process } = await fixture()
    const lost: string[] = []
    learnerOn(connection, clock, { packet: process, lost: (reason) => lost.push(reason) })
    sender.write(packets(MESSAGES))
    sender.write(new Uint8Array(16).fill(0x80))
    await clock.untilIdle()
    expect(lost).toEqual([expect.stringContaining('Expected a length')])
  })

  it('of a learner whose connection is closed meanwhile are dropped', async () => {
    const { clock, connection, sender, turns, process } = await fixture()
    const learner = learnerOn(connection, clock, {
      packet: () => {
        process()
        if (turns.length === 2) learner.close()
      },
    })
    sender.write(packets(MESSAGES))
    await clock.untilIdle()
    expect(total(turns)).toBeLessThan(200)
  })
})

describe('the sessions that a learner reports', () => {
  const STEPS = 300

  it('are touched over several turns, before the packets behind them are processed', async () => {
    const { clock, connection, sender, turns, process } = await fixture()
    const events: string[] = []
    const learner = learnerOn(connection, clock, {
      packet: (type) => {
        if (type === PacketType.ping) learner.run(steps(process, () => events.push('touched')))
        else events.push('acknowledged')
      },
    })
    sender.write(new Uint8Array([...packets(2, PacketType.ping), ...packets(1)]))
    await clock.untilIdle()
    expect(events).toEqual(['touched', 'touched', 'acknowledged'])
    expect(total(turns)).toBe(2 * STEPS)
    expect(Math.max(...turns)).toBeLessThan(120)
  })

  it('are touched no more once its connection is closed', async () => {
    const { clock, connection, sender, turns, process } = await fixture()
    const learner = learnerOn(connection, clock, {
      packet: () => {
        learner.run(steps(process))
        clock.immediate(() => learner.close())
      },
    })
    sender.write(packets(1))
    await clock.untilIdle()
    expect(total(turns)).toBeLessThan(120)
  })

  function* steps(process: () => void, done: () => void = () => {}): Generator<void> {
    for (let i = 0; i < STEPS; i++) yield process()
    done()
  }
})

describe('the work of a message', () => {
  function* failing(process: () => void, steps: number): Generator<void> {
    for (let i = 0; i < steps; i++) yield process()
    throw new Error('diverged')
  }

  it('throws what a step throws in the turn of the message', async () => {
    const { clock, process } = await fixture()
    const scheduler = new ReadScheduler(clock, () => 3, { pause() {}, resume() {} })
    expect(() => scheduler.run(failing(process, 1))).toThrow(new Error('diverged'))
  })

  it('rejects with what a step throws in a later turn, and the work behind it is done', async () => {
    const { clock, process } = await fixture()
    const scheduler = new ReadScheduler(clock, () => 3, { pause() {}, resume() {} })
    const failed = expect(scheduler.run(failing(process, 100))).rejects.toThrow(new Error('diverged'))
    const next = scheduler.run([][Symbol.iterator]())
    await clock.untilIdle()
    await failed
    await expect(next).resolves.toBeUndefined()
  })
})
