/** Who is told of what. */
export { Mode, WatchTable } from './table.ts'
export type { Watcher } from './table.ts'
export { Watches } from './watches.ts'
export type { Notify } from './watches.ts'
export { Firing } from './firing.ts'
export type { Listener } from './firing.ts'
