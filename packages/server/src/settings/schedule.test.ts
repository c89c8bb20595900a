import { describe, expect, it } from 'vitest'
import { nextTime, schedule } from './schedule.ts'

const { read, accepts, expected, show } = schedule()
const HOUR = 3_600_000

describe('a schedule', () => {
  it.each([
    ['6h', 6 * HOUR],
    ['0', 0],
    ['30 3 * * *', '30 3 * * *'],
    ['*/15 8-18 * * mon-fri', '*/15 8-18 * * mon-fri'],
  ])('is read from %j', (given, value) => {
    expect(read(given)).toBe(value)
    expect(accepts(value)).toBe(true)
  })

  it.each([
    '',
    'daily',
    '30 3 * *',
    '0 30 3 * * *',
    '60 3 * * *',
    '0 0 31 2 *',
    `${'1,'.repeat(60)}1 * * * *`,
  ])('is not read from %j', (given) => {
    expect(read(given)).toBeUndefined()
    expect(accepts(given)).toBe(false)
    expect(expected).toContain('five fields of cron')
  })

  it('comes next after its time, or at the next time of cron in UTC', () => {
    expect(nextTime(HOUR, 5)).toBe(HOUR + 5)
    expect(nextTime(0, 5)).toBeUndefined()
    const at = Date.UTC(2026, 2, 29, 3, 30)
    expect(nextTime('30 3 * * *', at - 1)).toBe(at)
    expect(nextTime('30 3 * * *', at)).toBe(at + 24 * HOUR)
    expect([show(HOUR), show('30 3 * * *')]).toEqual(['1 h', '30 3 * * *'])
  })
})
