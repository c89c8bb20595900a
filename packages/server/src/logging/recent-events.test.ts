import { ManualClock, silentLogger } from '@zabra/runtime'
import { beforeEach, describe, expect, it } from 'vitest'
import { EventLogger } from './event-logger.ts'

let clock: ManualClock
let logger: EventLogger

beforeEach(() => {
  clock = new ManualClock()
  logger = new EventLogger(silentLogger, clock)
})

function kept(): Record<string, unknown>[] {
  const { events } = logger
  const lines: Record<string, unknown>[] = []
  for (let number = events.oldest; number <= events.newest; number++)
    lines.push(JSON.parse(events.at(number).json) as Record<string, unknown>)
  return lines
}

describe('the recent events', () => {
  it('are kept whatever the level of the log, with what the server is', () => {
    logger.level = 'error'
    logger.origin = () => ({ member: 2, epoch: 7, role: 'looking' })
    logger.info({ votes: true }, 'Looking for a leader')
    logger.debug({}, 'Serving clients')
    expect(kept()).toEqual([
      {
        time: '2023-11-14T22:13:20.000Z',
        level: 'info',
        id: 'election.looking',
        part: 'election',
        member: 2,
        epoch: 7,
        role: 'looking',
        votes: true,
        msg: 'Looking for a leader',
      },
    ])
  })

  it('are neither lines of the audit nor what clients do all the time', () => {
    logger.info({ id: 'audit.event' }, 'session=0x1 operation=create znode=/a')
    logger.error({ id: 'audit.failed-event' }, 'session=0x1 operation=create znode=/a')
    logger.info({ id: 'client.closed' }, 'Closed by the client')
    logger.info({}, 'A session is connected')
    logger.info({}, 'A client has logged in by SASL')
    logger.info({}, 'This sentence is that of no event')
    expect(kept()).toEqual([])
  })

  it('that are alike are ten in a minute, and then one with their number', () => {
    for (let i = 0; i < 50; i++) logger.info({ session: `0x${i}`, times: 1000 }, 'A session expired')
    for (let i = 0; i < 50; i++)
      logger.info({ id: 'client.refused', i }, `Refused a connection: its address has ${i} connections`)
    logger.info({ id: 'client.refused' }, 'Refused a connection: the server is stopping')
    expect(kept().length).toBe(21)
    clock.advance(60_000)
    expect(kept().slice(21)).toMatchObject([
      { id: 'session.expired', session: '0x49', times: 40_000 },
      { id: 'client.refused', i: 49, times: 40 },
    ])
    logger.info({ session: '0x50' }, 'A session expired')
    expect(kept().at(-1)).toMatchObject({ session: '0x50' })
  })

  it('about paths that differ are alike: clients choose these', () => {
    for (let i = 0; i < 1000; i++) {
      const path = `/${'x'.repeat(i)}`
      logger.warn({ id: 'quota.exceeded', path }, `${path} goes beyond its limit of 1 nodes`)
    }
    expect(kept().length).toBe(10)
    clock.advance(60_000)
    expect(kept().at(-1)).toMatchObject({ id: 'quota.exceeded', times: 990 })
  })

  it('are 512 at most', () => {
    for (let i = 0; i < 600; i++) {
      logger.info({ i }, 'Looking for a leader')
      clock.advance(60_000)
    }
    expect(kept().map(({ i }) => i)).toEqual(Array.from({ length: 512 }, (_, i) => 88 + i))
  })

  it('have no fields where these are long, nor values of secrets, and keep their own names', () => {
    logger.info({ reason: 'x'.repeat(5000) }, 'Looking for a leader')
    logger.info({ password: 'marker', user: { superDigest: 'marker' }, level: 3, n: 1n }, 'Stopped')
    const [long, short] = kept()
    expect(long).toMatchObject({ id: 'election.looking', msg: 'Looking for a leader', cut: true })
    expect(JSON.stringify(long).length).toBeLessThan(4096)
    expect(short).toMatchObject({ level: 'info', id: 'server.stopped', n: '1' })
    expect(JSON.stringify(short)).not.toContain('marker')
  })
})
