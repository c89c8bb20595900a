/** Watches, and the notifications that they cause. */
export { WatchBits, WatchTable } from './watch-table.ts'
export type { PathSet, Watcher } from './watch-table.ts'
export { WatchManager } from './watch-manager.ts'
export { WatchNotifier } from './watch-notifier.ts'
export type { NotifiedWatcher } from './watch-notifier.ts'
export { WatchStats } from './watch-stats.ts'
