export { EventLogger } from './event-logger.ts'
export { isEventId, LOG_LEVELS, LOG_PARTS } from './parts.ts'
export type { RecentEvent, RecentEvents } from './recent-events.ts'
