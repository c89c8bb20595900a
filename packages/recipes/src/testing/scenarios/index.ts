import { expectEqual, type Scenario } from './context.ts'
import { runLeaderBodies } from './leader-bodies.ts'
import { registrations } from './registrations.ts'
import { barriers } from './barriers.ts'
import { runFencedPartitioner, runPartitioner } from './partitions.ts'
import { runPermits } from './permits.ts'
import { queues } from './queues.ts'
import { runLocks } from './locks.ts'
import { values } from './values.ts'

export type { ScenarioContext, Scenario } from './context.ts'

/** A scenario and the name of the mutant that it must detect. */
export interface RegisteredScenario {
  readonly run: Scenario
  readonly mutant?: string
}

const lockScenario =
  (way: string): Scenario =>
  async (context) => {
    const { violations } = await runLocks(way, context)
    expectEqual('violations of mutual exclusion', violations, [])
    await context.waitUntilHealed()
  }
const registrationScenario = (word: string): Scenario => {
  const [, play] = Object.entries(registrations).find(([name]) => name.startsWith(word))!
  return play
}

/** All scenarios by name, as used on the command line. */
export const scenarios: Readonly<Record<string, RegisteredScenario>> = {
  mutex: { run: lockScenario('mutex'), mutant: 'Mutex' },
  'mutex-lease': { run: lockScenario('mutex with a lease'), mutant: 'Mutex' },
  'read-write-lock': { run: lockScenario('read/write lock'), mutant: 'ReadWriteLock' },
  semaphore: { run: lockScenario('semaphore'), mutant: 'Semaphore' },
  'semaphore-permits': { run: runPermits, mutant: 'Semaphore.setPermits' },
  'multi-lock': { run: lockScenario('several locks'), mutant: 'MultiLock' },
  revocable: { run: lockScenario('revocable mutex'), mutant: 'RevocableMutex' },
  'revocable-force': { run: lockScenario('lock revoked by force'), mutant: 'revoke by force' },
  lease: { run: lockScenario('lease'), mutant: 'lease' },
  'leader-election': { run: lockScenario('leader election'), mutant: 'LeaderElection' },
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
  'persistent-node': { run: registrationScenario('persistent'), mutant: 'PersistentNode' },
  'service-discovery': { run: registrationScenario('services'), mutant: 'ServiceDiscovery' },
  'name-service': { run: registrationScenario('names'), mutant: 'NameService' },
  configuration: { run: registrationScenario('configurations'), mutant: 'Configuration' },
  partitioner: { run: runPartitioner, mutant: 'Partitioner' },
  'partitioner-fenced': { run: runFencedPartitioner, mutant: 'revoke by force' },
}
