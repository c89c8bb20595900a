import { Cron } from 'croner'
import * as z from 'zod/mini'
import { duration, showDuration, valueType, type ValueType } from './value-types.ts'

const every = duration('ms', { min: 0 })
const EXPECTED = `${every.expected}, or five fields of cron, such as 30 3 * * *`
const MAX_LENGTH = 100

/** When something is done again and again: each so many milliseconds, 0 for never, or at the times of five fields of cron, in UTC. */
export type Schedule = number | string

/** A `Schedule`. */
export function schedule(): ValueType<Schedule> {
  const isCron = (text: string): boolean => (cronOf(text)?.nextRun() ?? undefined) !== undefined
  return valueType<Schedule>({
    schema: () =>
      z.union([z.int().check(z.refine((ms) => every.accepts(ms))), z.string().check(z.refine(isCron))]),
    read: (text) => every.read(text) ?? text,
    expected: EXPECTED,
    unit: every.unit,
    show: (time) => (typeof time === 'number' ? showDuration(time) : time),
  })
}

/** Returns the next time of a schedule after a time, in milliseconds since 1970; undefined where there is none. */
export function nextTime(when: Schedule, after: number): number | undefined {
  if (typeof when === 'number') return when === 0 ? undefined : after + when
  return cronOf(when)?.nextRun(new Date(after))?.getTime()
}

function cronOf(text: string): Cron | undefined {
  if (text.length > MAX_LENGTH) return undefined
  try {
    // Without a function it starts no timer.
    return new Cron(text, { mode: '5-part', timezone: 'UTC' })
  } catch {
    return undefined
  }
}
