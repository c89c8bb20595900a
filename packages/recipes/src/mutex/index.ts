export { Mutex, type MutexOptions } from './mutex.ts'
export { LockTimeoutError, type Participant } from '../handles/lock-timeout.ts'
