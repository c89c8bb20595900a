export { acquireAll, inPathOrder, type MultiLockHandle } from './multi-lock.ts'
