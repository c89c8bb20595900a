import type { LogLevel } from '@zabra/runtime'
import { logEvents } from './log-events.ts'
import type { LogEvent } from './log-event.ts'

/** The levels of a log, each with those before it. */
export const LOG_LEVELS: readonly LogLevel[] = ['error', 'warn', 'info', 'debug']

/** An event as lines name it. */
export interface NamedEvent extends LogEvent {
  readonly id: string
  /** The part of the server, which may have a level of its own. */
  readonly part: string
}

export const namedEvents: readonly NamedEvent[] = Object.entries(logEvents).map(([id, event]) => ({
  id,
  part: id.slice(0, id.indexOf('.')),
  ...event,
}))

/** The parts of a server that log. */
export const LOG_PARTS: readonly string[] = [...new Set(namedEvents.map(({ part }) => part))].sort()

const byId = new Map(namedEvents.map((named) => [named.id, named]))
const byMessage = new Map(namedEvents.map((named) => [named.message, named]))

/** Whether an event of the log has this id. */
export const isEventId = (id: string): boolean => byId.has(id)

/** Returns the event of a line: the one whose message it has, or that its context names; undefined for other lines. */
export const eventOf = (context: object, message: string): NamedEvent | undefined =>
  byMessage.get(message) ?? byId.get((context as { readonly id?: string }).id ?? '')
