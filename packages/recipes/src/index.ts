export {
  LostError,
  type Abortable,
  type AcquireOptions,
  type Handle,
  type LockHandle,
  type LostReason,
  type Naming,
  type RecipeOptions,
  type ReleaseOptions,
  type WaitOptions,
} from './handles/index.ts'
export { LockTimeoutError, Mutex, type MutexOptions, type Participant } from './mutex/index.ts'
export { ReadWriteLock, type LockSide, type ReadWriteParticipant } from './read-write-lock/index.ts'
export {
  PermitsConflictError,
  Semaphore,
  type PermitHolder,
  type PermitOptions,
  type SemaphoreOptions,
} from './semaphore/index.ts'
export {
  LeaderElection,
  type ElectionOptions,
  type LeadOptions,
  type ElectionParticipant,
  type Leader,
} from './leader-election/index.ts'
export { Lease, type LeaseHandle, type LeaseOptions } from './lease/index.ts'
export { AmbiguousResultError } from './support/index.ts'
export { Barrier, type BarrierOptions, type BarrierWaitOptions } from './barrier/index.ts'
export {
  curatorItems,
  Queue,
  QueueFullError,
  type Message,
  type PutOptions,
  type QueueOptions,
  type ReceiveOptions,
} from './queue/index.ts'
export { DoubleBarrier, type BarrierHandle } from './double-barrier/index.ts'
export {
  settledChildren,
  TreeCache,
  TreeTooLargeError,
  watchChildren,
  watchData,
  type CacheEvent,
  type Entry,
  type NodeChange,
  type TreeCacheOptions,
} from './tree-cache/index.ts'
export { NodeConflictError, PersistentNode, type PersistentNodeOptions } from './persistent-node/index.ts'
export {
  Group,
  MemberIdConflictError,
  Party,
  type GroupChange,
  type GroupOptions,
  type JoinOptions,
  type Membership,
  type PartyMembership,
  type PartyOptions,
} from './group/index.ts'
export {
  AtomicValue,
  bigEndian,
  Counter,
  decimal,
  UniqueIds,
  type AtomicValueOptions,
  type CounterOptions,
  type UniqueIdsOptions,
  type Versioned,
} from './atomic-value/index.ts'
export {
  Configuration,
  type ConfigurationOptions,
  type ConfigurationSetOptions,
  type ConfigurationValue,
} from './configuration/index.ts'
