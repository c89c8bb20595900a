export { TreeCache, TreeTooLargeError } from './tree-cache.ts'
export type { CacheEvent, TreeCacheOptions } from './tree-cache.ts'
export type { Entry, NodeChange } from './entries.ts'
export { settledChildren, watchChildren, watchData } from './watchers.ts'
