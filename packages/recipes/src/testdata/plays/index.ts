import { demand, type Play } from './cast.ts'
import { playBodies } from './bodies.ts'
import { keepers } from './keepers.ts'
import { meetings } from './meetings.ts'
import { playFencedPartitions, playPartitions } from './partitions.ts'
import { playPermits } from './permits.ts'
import { queues } from './queues.ts'
import { playRights } from './rights.ts'
import { values } from './values.ts'

export type { Cast, Play } from './cast.ts'

/** A recipe under faults: what is played, and the bug of `plants.ts` that this must find. */
export interface Scene {
  readonly play: Play
  readonly plant?: string
}

const right = (way: string): Play => async (cast) => {
  const { wrong } = await playRights(way, cast)
  demand('rights that exclude each other', wrong, [])
  await cast.calm()
}
const keeper = (word: string): Play => {
  const [, play] = Object.entries(keepers).find(([name]) => name.startsWith(word))!
  return play
}

/** Every recipe, by the name that a command gives it. */
export const scenes: Readonly<Record<string, Scene>> = {
  mutex: { play: right('mutex'), plant: 'Mutex' },
  'mutex-lease': { play: right('mutex with a lease'), plant: 'Mutex' },
  'read-write-lock': { play: right('read/write lock'), plant: 'ReadWriteLock' },
  semaphore: { play: right('semaphore'), plant: 'Semaphore' },
  'semaphore-permits': { play: playPermits, plant: 'Semaphore.setPermits' },
  'multi-lock': { play: right('several locks'), plant: 'acquireAll' },
  revocable: { play: right('revocable mutex'), plant: 'RevocableMutex' },
  'revocable-force': { play: right('lock revoked by force'), plant: 'revoke by force' },
  lease: { play: right('lease'), plant: 'lease' },
  'leader-election': { play: right('leader election'), plant: 'LeaderElection' },
  'leader-election-body': { play: playBodies, plant: 'LeaderElection.lead' },
  barrier: { play: meetings['barrier']!, plant: 'Barrier' },
  'double-barrier': { play: meetings['double barrier']!, plant: 'DoubleBarrier' },
  'two-phase-commit': { play: meetings['two-phase commit']!, plant: 'twoPhaseCommit' },
  'queue-take': { play: queues['queue, take']!, plant: 'Queue' },
  'queue-receive': { play: queues['queue, receive']!, plant: 'Queue.receive' },
  'queue-dead-letters': { play: queues['queue, dead letters']!, plant: 'dead letters' },
  'queue-bounded': { play: queues['queue, bounded']!, plant: 'hard bound' },
  'atomic-value': { play: values['atomic value and counter']!, plant: 'AtomicValue, Counter' },
  'tree-cache': { play: values['tree cache']!, plant: 'TreeCache' },
  group: { play: values['group']!, plant: 'Group' },
  'persistent-node': { play: keeper('persistent'), plant: 'PersistentNode' },
  'service-discovery': { play: keeper('services'), plant: 'ServiceDiscovery' },
  'name-service': { play: keeper('names'), plant: 'NameService' },
  configuration: { play: keeper('configurations'), plant: 'Configuration' },
  partitioner: { play: playPartitions, plant: 'Partitioner' },
  'partitioner-fenced': { play: playFencedPartitions, plant: 'revoke by force' },
}
