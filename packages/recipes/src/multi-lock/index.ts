export { MultiLock, type MultiLockHandle } from './multi-lock.ts'
