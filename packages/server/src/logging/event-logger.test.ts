import { ManualClock, type Logger, type LogLevel } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { EventLogger } from './event-logger.ts'

const EXPIRED = 'The connection of a learner is lost'
const LOOKING = 'Looking for a leader'

let clock: ManualClock
let lines: { level: LogLevel; context: object; message: string }[]
let output: Logger
let logger: EventLogger

beforeEach(() => {
  clock = new ManualClock()
  lines = []
  const line =
    (level: LogLevel) =>
    (context: object, message: string): void =>
      void lines.push({ level, context, message })
  output = {
    level: 'info',
    error: line('error'),
    warn: line('warn'),
    info: line('info'),
    debug: line('debug'),
  }
  logger = new EventLogger(output, clock)
})

describe('a line', () => {
  it('has the id of its event, its part, and what the server is', () => {
    logger.origin = () => ({ member: 2, epoch: 7, role: 'looking' })
    logger.info({ votes: true }, LOOKING)
    expect(lines[0]!.context).toEqual({
      id: 'election.looking',
      part: 'election',
      member: 2,
      epoch: 7,
      role: 'looking',
      votes: true,
    })
  })

  it('is observed with its id whether it is written or not, unless it is a debug line', () => {
    const seen: unknown[] = []
    logger.observer = (id, context, message) => void seen.push([id, context, message])
    logger.level = 'error'
    logger.info({ votes: true }, LOOKING)
    logger.debug({}, LOOKING)
    logger.error({}, 'No event has this sentence')
    expect(seen).toEqual([['election.looking', { votes: true }, LOOKING]])
  })

  it('may name its event in the context, where its message varies', () => {
    logger.warn({ id: 'log.cut', file: 'log.1' }, 'Cut the log: the leader has nothing after 0x1')
    expect(lines[0]!.context).toEqual({ id: 'log.cut', part: 'log', file: 'log.1' })
  })

  it('keeps the epoch that it is about', () => {
    logger.origin = () => ({ epoch: 7 })
    logger.info({ epoch: 3 }, LOOKING)
    expect(lines[0]!.context).toMatchObject({ epoch: 3 })
  })

  it('is counted where it is written', () => {
    logger.info({}, LOOKING)
    logger.debug({}, LOOKING)
    expect(logger.lines).toEqual({ error: 0, warn: 0, info: 1, debug: 0 })
  })
})

describe('the level of a part', () => {
  it('lets more of this part be written, and no more of others', () => {
    logger.levels.set('debug', undefined, 'election')
    logger.debug({}, LOOKING)
    logger.debug({}, 'Serving clients')
    logger.debug({}, 'a line without an event')
    expect(lines.map(({ message }) => message)).toEqual([LOOKING])
    expect(logger.levels.parts).toEqual({ election: 'debug' })
  })

  it('lets less of this part be written', () => {
    logger.levels.set('warn', undefined, 'election')
    logger.info({}, LOOKING)
    logger.info({}, 'Stopped')
    expect(lines.map(({ message }) => message)).toEqual(['Stopped'])
  })

  it('goes back when its time is over, to the one that was set for good', () => {
    logger.levels.set('warn', undefined, 'election')
    logger.levels.set('debug', 600, 'election')
    logger.levels.set('error', 60, 'election')
    clock.advance(60_000)
    expect(logger.levels.parts).toEqual({ election: 'warn' })
    expect(output.level).toBe('info')
  })

  it('follows the level of all again when it gets the same', () => {
    logger.levels.set('debug', undefined, 'election')
    logger.levels.set('info', undefined, 'election')
    expect([logger.levels.parts, output.level]).toEqual([{}, 'info'])
    logger.level = 'error'
    logger.info({}, LOOKING)
    expect(lines).toEqual([])
  })

  it('stays when the level of all changes', () => {
    logger.levels.set('debug', undefined, 'election')
    logger.levels.set('error')
    logger.warn({}, 'a line without an event')
    logger.debug({}, LOOKING)
    expect(lines.map(({ message }) => message)).toEqual([LOOKING])
    expect(logger.level).toBe('error')
  })

  it('is more than a silent logger writes', () => {
    output.level = 'silent'
    logger.error({}, 'The data could not be replaced')
    logger.levels.set('info', undefined, 'election')
    logger.info({}, LOOKING)
    logger.error({}, 'The data could not be replaced')
    expect(lines.map(({ message }) => message)).toEqual([LOOKING])
  })
})

describe('repeats', () => {
  const lose = (times: number, peer: number): void => {
    for (let i = 0; i < times; i++) logger.info({ peer, i }, EXPIRED)
  }

  it('are one line with a count after ten lines in a minute', () => {
    lose(25, 3)
    expect(lines).toHaveLength(10)
    clock.advance(60_000)
    expect(lines).toHaveLength(11)
    expect(lines[10]!.context).toMatchObject({ peer: 3, i: 24, times: 15 })
  })

  it('are counted apart for each thing that they are about', () => {
    lose(10, 3)
    lose(10, 4)
    expect(lines).toHaveLength(20)
  })

  it('are counted anew in the next minute', () => {
    lose(10, 3)
    clock.advance(60_000)
    lose(10, 3)
    expect(lines).toHaveLength(20)
  })

  it('take little memory, whatever they are about', () => {
    for (let peer = 0; peer < 5000; peer++) lose(1, peer)
    expect(lines).toHaveLength(1010)
    clock.advance(60_000)
    expect(lines.at(-1)!.context).toMatchObject({ times: 3990 })
  })

  it('are told at the end of the server', () => {
    lose(12, 3)
    logger.close()
    expect(lines.at(-1)!.context).toMatchObject({ times: 2 })
  })

  it('are not folded where the code limits them itself, and for lines without an event', () => {
    for (let i = 0; i < 50; i++) {
      logger.info({ id: 'audit.event' }, `event ${i}`)
      logger.info({}, 'a line without an event')
    }
    expect(lines).toHaveLength(100)
  })
})
