export { EventLogger } from './event-logger.ts'
export { LOG_LEVELS, LOG_PARTS } from './parts.ts'
