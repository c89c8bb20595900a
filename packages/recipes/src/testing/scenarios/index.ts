import { expectEqual, type Scenario } from './context.ts'
import { runLeaderBodies } from './leader-bodies.ts'
import { keepers } from './keepers.ts'
import { barriers } from './barriers.ts'
import { runFencedPartitioner, runPartitioner } from './partitions.ts'
import { runPermits } from './permits.ts'
import { queues } from './queues.ts'
import { runLocks } from './locks.ts'
import { values } from './values.ts'

export type { ScenarioContext, Scenario } from './context.ts'

/** A recipe under faults: what is played, and the bug of `plants.ts` that this must find. */
export interface RegisteredScenario {
  readonly run: Scenario
  readonly mutant?: string
}

const right =
  (way: string): Scenario =>
  async (cast) => {
    const { wrong } = await runLocks(way, cast)
    expectEqual('rights that exclude each other', wrong, [])
    await cast.waitUntilHealed()
  }
const keeper = (word: string): Scenario => {
  const [, play] = Object.entries(keepers).find(([name]) => name.startsWith(word))!
  return play
}

/** Every recipe, by the name that a command gives it. */
export const scenarios: Readonly<Record<string, RegisteredScenario>> = {
  mutex: { run: right('mutex'), mutant: 'Mutex' },
  'mutex-lease': { run: right('mutex with a lease'), mutant: 'Mutex' },
  'read-write-lock': { run: right('read/write lock'), mutant: 'ReadWriteLock' },
  semaphore: { run: right('semaphore'), mutant: 'Semaphore' },
  'semaphore-permits': { run: runPermits, mutant: 'Semaphore.setPermits' },
  'multi-lock': { run: right('several locks'), mutant: 'acquireAll' },
  revocable: { run: right('revocable mutex'), mutant: 'RevocableMutex' },
  'revocable-force': { run: right('lock revoked by force'), mutant: 'revoke by force' },
  lease: { run: right('lease'), mutant: 'lease' },
  'leader-election': { run: right('leader election'), mutant: 'LeaderElection' },
  'leader-election-body': { run: runLeaderBodies, mutant: 'LeaderElection.lead' },
  barrier: { run: barriers['barrier']!, mutant: 'Barrier' },
  'double-barrier': { run: barriers['double barrier']!, mutant: 'DoubleBarrier' },
  'two-phase-commit': { run: barriers['two-phase commit']!, mutant: 'twoPhaseCommit' },
  'queue-take': { run: queues['queue, take']!, mutant: 'Queue' },
  'queue-receive': { run: queues['queue, receive']!, mutant: 'Queue.receive' },
  'queue-dead-letters': { run: queues['queue, dead letters']!, mutant: 'dead letters' },
  'queue-bounded': { run: queues['queue, bounded']!, mutant: 'hard bound' },
  'atomic-value': { run: values['atomic value and counter']!, mutant: 'AtomicValue, Counter' },
  'tree-cache': { run: values['tree cache']!, mutant: 'TreeCache' },
  group: { run: values['group']!, mutant: 'Group' },
  'persistent-node': { run: keeper('persistent'), mutant: 'PersistentNode' },
  'service-discovery': { run: keeper('services'), mutant: 'ServiceDiscovery' },
  'name-service': { run: keeper('names'), mutant: 'NameService' },
  configuration: { run: keeper('configurations'), mutant: 'Configuration' },
  partitioner: { run: runPartitioner, mutant: 'Partitioner' },
  'partitioner-fenced': { run: runFencedPartitioner, mutant: 'revoke by force' },
}
