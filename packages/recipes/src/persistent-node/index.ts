export { NodeConflictError, PersistentNode } from './persistent-node.ts'
export type { PersistentNodeOptions } from './persistent-node.ts'
