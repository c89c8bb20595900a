import {
  MultiError,
  NodeExistsError,
  NoNodeError,
  type Client,
  type Stat,
  type WriteOp,
} from '@zabra/client/core'
import { isNewSession, isUnclear, throughSessions } from '../waiting/errors.ts'

/** The exports of a module. */
// oxlint-disable-next-line typescript/no-explicit-any -- whatever a module has may be bent
type Exports = any

/** A bug, and the random suite that has to catch it. */
export interface RecipeMutant {
  /** What goes wrong. */
  readonly defect: string
  /** The module below `src` that goes wrong, and how. */
  readonly module: string
  readonly mutate: (original: Exports) => Exports
  /** The file of the suite and a part of the name of its test. */
  readonly suite: readonly [file: string, test: string]
  /** Which kind of rights is played, in the suite that has several. */
  readonly kind?: string
}

const locks = ['random.test.ts', 'random participants'] as const
const keepers = (test: string): readonly [string, string] => ['random-keepers.test.ts', test]

/** What was done is done again when its reply is lost, instead of looking for the mark. */
const repeatedAfterLostReply = ({ parentOf }: Exports): Exports => ({
  commitMarked: async (client: Client, mark: string, operations: readonly WriteOp[]) => {
    for (;;) {
      try {
        const [made, ...results] = await client.multi([
          { op: 'create', path: mark, mode: 'ephemeral' },
          ...operations,
        ])
        return { results, mark: (made as { stat?: Stat }).stat }
      } catch (error) {
        if (isUnclear(error) || isNewSession(client, error)) {
          await throughSessions(client, () => client.delete(mark, { missingOk: true }))
          continue
        }
        if (!(error instanceof MultiError)) throw error
        if (error.index > 0 || !(error.cause instanceof NoNodeError)) {
          const cause = error.cause as ConstructorParameters<typeof MultiError>[2]
          throw new MultiError(error.message, error.index - 1, cause)
        }
        await client.mkdirp(parentOf(mark))
      }
    }
  },
})

/** Only looks whether there is a folder for what it should put there. */
const withoutDeadLetters = (client: Client): Client =>
  new Proxy(client, {
    get: (_, key) => {
      const value: unknown = Reflect.get(client, key)
      if (key !== 'multi') return typeof value === 'function' ? value.bind(client) : value
      const bent = ({ path }: WriteOp): WriteOp => ({
        op: 'check',
        path: path.slice(0, path.lastIndexOf('/')),
      })
      return (operations: readonly WriteOp[]) =>
        client.multi(operations.map((each) => (each.path.includes('/dead/') ? bent(each) : each)))
    },
  })

export const mutants: Readonly<Record<string, RecipeMutant>> = {
  Mutex: {
    defect: 'contenders are ordered by their whole names (ZOOKEEPER-2931)',
    module: 'line/contenders.ts',
    mutate: (original) => ({
      verdictOf: (names: readonly string[], own: string, parse: (name: string) => unknown) => {
        const verdict = original.verdictOf(names, own, parse)
        if (verdict.turn === 'missing') return verdict
        const before = names.filter((name) => parse(name) !== undefined && name < own).toSorted()
        return before.length === 0 ? { turn: 'now' } : { turn: 'behind', name: before.at(-1) }
      },
    }),
    suite: locks,
    kind: 'mutex',
  },
  ReadWriteLock: {
    defect: 'a reader enters as soon as another reader stands before it',
    module: 'line/contenders.ts',
    mutate: (original) => ({
      verdictOf: (names: readonly string[], own: string, parse: (name: string) => Exports) => {
        const verdict = original.verdictOf(names, own, parse)
        const me = parse(own)
        const joins = names.some((name) => {
          const other = parse(name)
          return other?.shared && me?.shared && original.serial(other.sequence, me.sequence) < 0
        })
        return verdict.turn === 'behind' && joins ? { turn: 'now' } : verdict
      },
    }),
    suite: locks,
    kind: 'read/write lock',
  },
  Semaphore: {
    defect: 'leases are counted, not the permits that they stand for',
    module: 'semaphore/leases.ts',
    mutate: () => ({
      fits: (names: readonly string[], permits: number, limit: number) => names.length + permits <= limit,
    }),
    suite: locks,
    kind: 'semaphore',
  },
  'Semaphore.setPermits': {
    defect: 'permits are granted by a limit that was read before it changed',
    module: 'semaphore/permits.ts',
    mutate: ({ Permits }) => ({
      Permits: class extends Permits {
        async recent(signal: unknown): Promise<unknown> {
          return { ...(await super.recent(signal)), version: undefined }
        }
      },
    }),
    suite: keepers('permits are never more'),
  },
  acquireAll: {
    defect: 'only the first lock that the caller names is taken',
    module: 'multi-lock/multi-lock.ts',
    mutate: (original) => ({
      acquireAll: (all: readonly unknown[], options: unknown) =>
        original.acquireAll(all.slice(0, 1), options),
    }),
    suite: locks,
    kind: 'several locks',
  },
  LeaderElection: {
    defect: 'a leader does not take a broken connection for a loss',
    module: 'held/policy.ts',
    mutate: (original) => ({
      lossOf: (policy: unknown, situation: unknown) =>
        policy === 'connection' ? original.lossOf('session', situation) : original.lossOf(policy, situation),
    }),
    suite: locks,
    kind: 'leader election',
  },
  RevocableMutex: {
    defect: 'who is asked to let go is made to',
    module: 'revocable/revoke.ts',
    mutate: (original) => ({
      revoke: (client: unknown, path: unknown, options: object) =>
        original.revoke(client, path, { ...options, force: true }),
    }),
    suite: locks,
    kind: 'revocable mutex',
  },
  lease: {
    defect: 'the clock by which a lease ends is two seconds ahead',
    module: 'lease/grant.ts',
    mutate: (original) => ({
      isFree: (grant: unknown, writtenAt: number, now: number, holder: string) =>
        original.isFree(grant, writtenAt, now + 2000, holder),
    }),
    suite: locks,
    kind: 'lease',
  },
  'revoke by force': {
    defect: 'a guarded transaction is carried out whether its right exists or not',
    module: 'held/right.ts',
    mutate: ({ Right }) => ({
      Right: class extends Right {
        readonly client: Client

        constructor(client: Client, ...more: unknown[]) {
          super(client, ...more)
          this.client = client
        }

        guard(operations: readonly WriteOp[]): Promise<unknown> {
          return this.client.multi(operations)
        }
      },
    }),
    suite: locks,
    kind: 'lock revoked by force',
  },
  'LeaderElection.lead': {
    defect: 'the body of a leadership that is lost is not waited for (CURATOR-671)',
    module: 'leader-election/leader-election.ts',
    mutate: ({ LeaderElection }) => ({
      LeaderElection: class extends LeaderElection {
        lead(body: Exports, options: Exports): Promise<void> {
          const impatient = (leadership: Exports): Promise<unknown> => {
            const lost = new Promise((resolve) => leadership.signal.addEventListener('abort', resolve))
            const done = body(leadership)
            done.catch(() => {})
            return Promise.race([done, lost])
          }
          return super.lead(impatient, options)
        }
      },
    }),
    suite: keepers('leaders lead'),
  },
  Barrier: {
    defect: 'after some stray wake-ups a waiter passes (CURATOR issue 1290)',
    module: 'barrier/decide.ts',
    mutate: (original) => {
      let looks = 0
      return {
        passes: (now: unknown, first: unknown, generation: boolean) =>
          ++looks > 25 || original.passes(now, first, generation),
      }
    },
    suite: ['barrier/barrier.test.ts', 'with random cuts'],
  },
  DoubleBarrier: {
    defect: 'whoever leaves goes at once, without the others (CURATOR issue 753)',
    module: 'double-barrier/decide.ts',
    mutate: () => ({
      nextStep: (members: readonly string[], own: string) =>
        members.includes(own) ? { do: 'goAway', last: members.length === 1 } : { do: 'nothing' },
    }),
    suite: ['double-barrier/double-barrier.test.ts', 'with random cuts'],
  },
  Queue: {
    defect: 'what was put is put again when the reply is lost',
    module: 'waiting/marked.ts',
    mutate: repeatedAfterLostReply,
    suite: ['queue/queue-faults.test.ts', 'with random cuts'],
  },
  'Queue.receive': {
    defect: 'a message that is given back stays with who had it',
    module: 'queue/message.ts',
    mutate: ({ Message }) => ({
      Message: class extends Message {
        nack(): Promise<void> {
          return Promise.resolve()
        }
      },
    }),
    suite: keepers('messages'),
  },
  'dead letters': {
    defect: 'what was delivered too often is thrown away',
    module: 'queue/claims.ts',
    mutate: (original) => ({
      receive: (context: Exports, ...more: unknown[]) =>
        original.receive({ ...context, client: withoutDeadLetters(context.client) }, ...more),
    }),
    suite: keepers('dead letters'),
  },
  'hard bound': {
    defect: 'two who put at once may find the same room',
    module: 'queue/producer.ts',
    mutate: ({ Producer }) => ({
      Producer: class extends Producer {
        constructor(...all: Exports[]) {
          super(...all.slice(0, 4), { ...all[4], hard: false })
        }
      },
    }),
    suite: keepers('bounded queues'),
  },
  'AtomicValue, Counter': {
    defect: 'what was added is added again when the reply is lost',
    module: 'waiting/marked.ts',
    mutate: repeatedAfterLostReply,
    suite: ['atomic-value/atomic-value.test.ts', 'random cuts'],
  },
  Configuration: {
    defect: 'a change is made again when the reply is lost',
    module: 'waiting/marked.ts',
    mutate: repeatedAfterLostReply,
    suite: keepers('configurations'),
  },
  TreeCache: {
    defect: 'a znode that was made again with the same version is not noticed (CURATOR issue 911)',
    module: 'tree-cache/entries.ts',
    mutate: ({ Entries }) => ({
      Entries: class extends Entries {
        read(path: string, entry: Exports, order: number): unknown {
          return this['get'](path)?.stat.version === entry.stat.version
            ? undefined
            : super.read(path, entry, order)
        }
      },
    }),
    suite: ['tree-cache/tree-cache.test.ts', 'random changes'],
  },
  Group: {
    defect: 'members that leave are not told of',
    module: 'group/decide.ts',
    mutate: (original) => ({
      difference: (before: unknown, now: unknown) => ({ ...original.difference(before, now), left: [] }),
    }),
    suite: ['group/group.test.ts', 'after random joins'],
  },
  PersistentNode: {
    defect: 'what it finds is kept, whatever it holds (CURATOR-146)',
    module: 'persistent-node/decide.ts',
    mutate: (original) => ({
      whenFound: (found: unknown, keeper: unknown) => {
        const what = original.whenFound(found, keeper)
        return what === 'write' ? 'keep' : what
      },
    }),
    suite: keepers('persistent nodes'),
  },
  ServiceDiscovery: {
    defect: 'the instance with the highest id is never chosen',
    module: 'service-discovery/down.ts',
    mutate: (original) => ({
      usable: (instances: readonly unknown[], isDown: unknown) =>
        original.usable(instances.length > 1 ? instances.slice(0, -1) : instances, isDown),
    }),
    suite: keepers('services'),
  },
  NameService: {
    defect: 'a name that somebody has is taken for one that was just got',
    module: 'waiting/marked.ts',
    mutate: (original) => ({
      commitMarked: async (...call: unknown[]) => {
        try {
          return await original.commitMarked(...call)
        } catch (error) {
          if (!(error instanceof MultiError && error.cause instanceof NodeExistsError)) throw error
          return { results: undefined, mark: undefined }
        }
      },
    }),
    suite: keepers('names'),
  },
  twoPhaseCommit: {
    defect: 'a vote to abort counts as one to commit',
    module: 'two-phase-commit/decide.ts',
    mutate: (original) => ({
      decide: (poll: Exports) =>
        original.decide({ ...poll, votes: new Map([...poll.votes.keys()].map((site) => [site, 'commit'])) }),
    }),
    suite: ['two-phase-commit/two-phase-commit.test.ts', 'random deaths'],
  },
  Partitioner: {
    defect: 'an item that moved is kept until its member leaves',
    module: 'partitioner/decide.ts',
    mutate: (original) => ({
      stepOf: (wanted: ReadonlySet<string>, phases: unknown) => ({
        ...original.stepOf(wanted, phases),
        ...(wanted.size > 0 && { leave: [] }),
      }),
    }),
    suite: ['partitioner/partitioner.test.ts', 'random churn'],
  },
}
