import type { SourceMutant } from '@zabra/testkit/mutants'

/** A defect of a recipe, and the random suite that must detect it. */
export interface RecipeMutant extends SourceMutant {
  readonly defect: string
  /** The file of the suite and a part of the name of its test. */
  readonly suite: readonly [file: string, test: string]
  /** The kind of lock to run, in a suite with several. */
  readonly kind?: string
}

type Suite = Pick<RecipeMutant, 'suite' | 'kind'>
type Changes = readonly (readonly [file: string, find: string, replace: string])[]

const mutant = (name: string, defect: string, where: Suite, changes: Changes): RecipeMutant => ({
  name,
  defect,
  ...where,
  changes: changes.map(([file, find, replace]) => ({ file: `packages/recipes/src/${file}`, find, replace })),
})
const locks = (kind: string): Suite => ({ suite: ['random.test.ts', 'random participants'], kind })
const registrations = (test: string): Suite => ({ suite: ['random-registrations.test.ts', test] })
const suite = (file: string, test: string): Suite => ({ suite: [file, test] })

/** Repeats a transaction when its reply is lost, without looking for the marker. */
const REPEATED_AFTER_LOST_REPLY: Changes = [
  [
    'support/commit-with-marker.ts',
    'const search = findMarker(client, { marker, tag, generation }, error)',
    `const search = retryInNewSession(client, () => client.delete(marker, { missingOk: true })).then(
          (): Stat | undefined => undefined,
        )`,
  ],
]

const all: readonly RecipeMutant[] = [
  mutant('Mutex', 'contenders are ordered by their whole names (ZOOKEEPER-2931)', locks('mutex'), [
    [
      'lock-queue/contenders.ts',
      'if (compareSequence(other.sequence, me.sequence) >= 0) continue',
      'if (name >= own) continue',
    ],
    [
      'lock-queue/contenders.ts',
      'if (nearest === undefined || compareSequence(other.sequence, nearest.sequence) > 0) nearest = other',
      'if (nearest === undefined || name > nearest.name) nearest = other',
    ],
  ]),
  mutant('ReadWriteLock', 'a reader enters when any reader is queued before it', locks('read/write lock'), [
    [
      'lock-queue/contenders.ts',
      "return nearest === undefined ? { turn: 'now' }",
      `const joins = names.some((name) => {
    const other = parse(name)
    return other?.isShared && me.isShared && compareSequence(other.sequence, me.sequence) < 0
  })
  return nearest === undefined || joins ? { turn: 'now' }`,
    ],
  ]),
  mutant('Semaphore', 'leases are counted instead of their permits', locks('semaphore'), [
    [
      'semaphore/leases.ts',
      "names.reduce((sum, name) => sum + (naming === 'kazoo' ? 1 : permitsOf(name)), permits) <= limit",
      'names.length + permits <= limit',
    ],
  ]),
  mutant(
    'Semaphore.setPermits',
    'permits are granted by a limit that was read before it changed',
    registrations('permits are never more'),
    [
      [
        'semaphore/permits.ts',
        'return this.#known ?? this.read(signal)',
        'return { ...(this.#known ?? (await this.read(signal))), version: undefined }',
      ],
    ],
  ),
  mutant('MultiLock', 'only the first of several locks is acquired', locks('several locks'), [
    [
      'multi-lock/multi-lock.ts',
      'this.#locks = inPathOrder(locks)',
      'this.#locks = inPathOrder(locks.slice(0, 1))',
    ],
  ]),
  mutant('LeaderElection', 'a broken connection does not end a leadership', locks('leader election'), [
    [
      'handles/policy.ts',
      "if (policy === 'session') return undefined",
      "if (policy === 'session' || policy === 'connection') return undefined",
    ],
  ]),
  mutant('RevocableMutex', 'a holder that is asked to release is forced to', locks('revocable mutex'), [
    ['revocable/revoke.ts', "if (!force) return 'refused'", ''],
  ]),
  mutant('lease', 'the clock by which a lease ends is two seconds fast', locks('lease'), [
    [
      'lease/grant.ts',
      'return now > writtenAt + grant.durationMs',
      'return now + 2000 > writtenAt + grant.durationMs',
    ],
  ]),
  mutant(
    'revoke by force',
    'a guarded transaction is applied whether its lock is held or not',
    locks('lock revoked by force'),
    [
      [
        'handles/ephemeral-lock-handle.ts',
        `    this.assertHeld()
    checkArgument('guard', 'operations', operations, ['a list', Array.isArray])
    try {
      const all = [{ op: 'check', path: this.path }, ...operations] as const
      const [, ...results] = await this.#client.multi<readonly WriteOp[]>(all, options)`,
        `    try {
      const results = await this.#client.multi<readonly WriteOp[]>(operations, options)`,
      ],
    ],
  ),
  mutant(
    'LeaderElection.lead',
    'leadership is released before the body of a lost term has ended (CURATOR-671)',
    registrations('leaders lead'),
    [
      [
        'leader-election/leader-election.ts',
        '() => body(leadership),',
        `() => Promise.race([
            body(leadership),
            new Promise<void>((resolve) => leadership.signal.addEventListener('abort', () => resolve())),
          ]),`,
      ],
    ],
  ),
  mutant(
    'Barrier',
    'a waiter passes after some spurious wake-ups (CURATOR issue 1290)',
    suite('barrier/barrier.test.ts', 'with random cuts'),
    [
      ['barrier/decide.ts', 'export function canPass(', 'let looks = 0\nexport function canPass('],
      ['barrier/decide.ts', 'return now === undefined ||', 'return ++looks > 25 || now === undefined ||'],
    ],
  ),
  mutant(
    'DoubleBarrier',
    'a member that leaves does not wait for the others (CURATOR issue 753)',
    suite('double-barrier/double-barrier.test.ts', 'with random cuts'),
    [
      [
        'double-barrier/decide.ts',
        'const inside = members.toSorted()',
        `if (members.length >= 0)
    return members.includes(own) ? { do: 'leave', last: members.length === 1 } : { do: 'done' }
  const inside = members.toSorted()`,
      ],
    ],
  ),
  mutant(
    'Queue',
    'a put is repeated when its reply is lost',
    suite('queue/queue-faults.test.ts', 'with random cuts'),
    REPEATED_AFTER_LOST_REPLY,
  ),
  mutant('Queue.receive', 'a message that is given back keeps its claim', registrations('messages'), [
    [
      'queue/message.ts',
      'this.#ending ??= this.#end(() => this.#returnToQueue(delayMs))',
      'if (delayMs >= 0) return',
    ],
  ]),
  mutant('dead letters', 'a message that was delivered too often is dropped', registrations('dead letters'), [
    [
      'queue/claims.ts',
      "{ op: 'create', path: `${layout.dead}/${letter}`, data },",
      "{ op: 'check', path: layout.dead },",
    ],
  ]),
  mutant('hard bound', 'concurrent puts may find the same free capacity', registrations('bounded queues'), [
    ['queue/producer.ts', 'this.#bound = bound', 'this.#bound = { ...bound, hard: false }'],
  ]),
  mutant(
    'AtomicValue, Counter',
    'an addition is repeated when its reply is lost',
    suite('atomic-value/atomic-value.test.ts', 'random cuts'),
    REPEATED_AFTER_LOST_REPLY,
  ),
  mutant(
    'Configuration',
    'a change is repeated when its reply is lost',
    registrations('configurations'),
    REPEATED_AFTER_LOST_REPLY,
  ),
  mutant(
    'TreeCache',
    'a znode that was deleted and created again with the same version goes unnoticed (CURATOR issue 911)',
    suite('tree-cache/tree-cache.test.ts', 'random changes'),
    [
      [
        'tree-cache/entries.ts',
        'if (old !== undefined && old.order > order) return []',
        'if (old !== undefined && (old.order > order || old.stat.version === stat.version)) return []',
      ],
    ],
  ),
  mutant('Group', 'members that leave are not reported', suite('group/group.test.ts', 'after random joins'), [
    [
      'group/decide.ts',
      'const left = [...before.keys()].filter((id) => !now.has(id))',
      'const left: string[] = []',
    ],
  ]),
  mutant(
    'PersistentNode',
    'existing data is kept, whatever it is (CURATOR-146)',
    registrations('persistent nodes'),
    [['persistent-node/decide.ts', "return same ? 'keep' : 'write'", "return same ? 'keep' : 'keep'"]],
  ),
  mutant('ServiceDiscovery', 'the instance with the highest id is never chosen', registrations('services'), [
    [
      'service-discovery/down.ts',
      'const enabled = instances.filter(',
      'const enabled = (instances.length > 1 ? instances.slice(0, -1) : instances).filter(',
    ],
  ]),
  mutant('NameService', 'a name that is taken counts as acquired', registrations('names'), [
    [
      'support/commit-with-marker.ts',
      'else if (!isNewSession(client, error)) throw withShiftedIndex(error)',
      `else if (error instanceof MultiError && error.cause instanceof Error && error.cause.name === 'NodeExistsError')
        return { results: undefined, marker: undefined }
      else if (!isNewSession(client, error)) throw withShiftedIndex(error)`,
    ],
  ]),
  mutant(
    'twoPhaseCommit',
    'a vote to abort counts as a vote to commit',
    suite('two-phase-commit/two-phase-commit.test.ts', 'random deaths'),
    [
      [
        'two-phase-commit/decide.ts',
        "if (participants.some((site) => votes.get(site) === 'abort')) return 'aborted'",
        '',
      ],
    ],
  ),
  mutant(
    'Partitioner',
    'an item that moved is kept until its member leaves',
    suite('partitioner/partitioner.test.ts', 'random churn'),
    [
      [
        'partitioner/decide.ts',
        'release: [...phases].flatMap(',
        'release: (wanted.size > 0 ? [] : [...phases]).flatMap(',
      ],
    ],
  ),
]

/** The mutants by name. */
export const mutants: Readonly<Record<string, RecipeMutant>> = Object.fromEntries(
  all.map((each) => [each.name, each]),
)
