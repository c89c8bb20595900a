import type { LogLevel } from '@zabra/runtime'

/** A thing that a server logs. */
export interface LogEvent {
  /** The most important level at which it is logged. */
  readonly level: LogLevel
  /** The message of its lines. Words in braces vary: such a line names the event by `id` in its context. */
  readonly message: string
  /** What has happened, and what it means; empty below `warn`. */
  readonly means: string
  /** What the operator should do; empty below `warn`. */
  readonly remedy: string
  /** Whether the code limits its lines itself, so that repeats are not folded. */
  readonly isLimited: boolean
  /** Whether it says what clients do all the time, or is a line of the audit: it is not one of `GET /api/v1/events`. */
  readonly isRoutine: boolean
}

interface Limits {
  readonly isLimited?: boolean
  readonly isRoutine?: boolean
}

const alarm =
  (level: LogLevel) =>
  (
    message: string,
    means: string,
    remedy: string,
    { isLimited = false, isRoutine = false }: Limits = {},
  ): LogEvent => ({
    level,
    message,
    means,
    remedy,
    isLimited,
    isRoutine,
  })
const notice =
  (level: LogLevel) =>
  (message: string, { isLimited = false, isRoutine = false }: Limits = {}): LogEvent => ({
    level,
    message,
    means: '',
    remedy: '',
    isLimited,
    isRoutine,
  })

export const error = alarm('error')
export const warn = alarm('warn')
export const info = notice('info')
export const debug = notice('debug')
