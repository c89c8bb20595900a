import { ErrorCode, OpCode } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { STEP } from '../steps.ts'
import type { MultiParts, SubTxn, Txn } from '../types.ts'
import { appliesInSteps, applyInSteps, Tree, type ChangeSink } from './index.ts'

const [MINE, OTHERS] = [7n, 8n]

class TreeFixture {
  readonly tree = new Tree({ extendedTypes: true, digest: false })
  readonly header = (sessionId = MINE) => ({ sessionId, cxid: 1, zxid: this.tree.lastZxid + 1, time: 1 })

  create(path: string, owner?: bigint): void {
    this.tree.apply(this.header(owner ?? MINE), createOf(path, { ephemeral: owner !== undefined }))
  }

  /** Applies a transaction, and returns its error and what has changed in each step. */
  run(txn: Txn, sink?: RecordingReceiver): { err: number; steps: string[][] } {
    const steps: string[][] = []
    const task = applyInSteps(this.tree, this.header(), txn, sink)
    for (;;) {
      const { done, value } = task.next()
      expect(this.tree.isApplying).toBe(done !== true)
      steps.push(sink?.take() ?? [])
      if (done === true) return { err: value, steps }
    }
  }
}

/** Records changes; with `eventsPerChange` each takes that many steps to be notified. */
class RecordingReceiver implements ChangeSink {
  aclEntriesVisited = 0
  entriesPerChange = 0
  eventsPerChange = 0
  readonly crowds = new Set<string>()
  #waiting = 0
  #log: string[] = []
  created = (path: string): void => this.#change(`created ${path}`)
  deleted = (path: string): void => this.#change(`deleted ${path}`)
  dataChanged = (path: string): void => this.#change(`changed ${path}`)
  hasCrowd = (path: string): boolean => this.crowds.has(path)

  get hasCrowds(): boolean {
    return this.crowds.size > 0
  }

  get hasWaiting(): boolean {
    return this.#waiting > 0
  }

  *notifyInSteps(): Generator<void> {
    for (; this.#waiting > 0; this.#waiting--) {
      yield
      this.#log.push('event')
    }
  }

  note(what: string): void {
    this.#log.push(what)
  }

  take(): string[] {
    return this.#log.splice(0)
  }

  #change(what: string): void {
    this.#log.push(what)
    this.aclEntriesVisited += this.entriesPerChange
    this.#waiting = this.eventsPerChange
  }
}

const paths = (count: number): string[] => Array.from({ length: count }, (_, i) => `/n${i}`)
const failure = { type: OpCode.error, err: ErrorCode.NONODE } as const
const multi = (...txns: SubTxn[]): Txn => ({ type: OpCode.multi, txns: txns as MultiParts })
const closing = (...paths2Delete: string[]): Txn => ({ type: OpCode.closeSession, paths2Delete })

describe('a transaction may take several turns', () => {
  const { tree } = new TreeFixture()
  const watched = new RecordingReceiver()
  watched.crowds.add('/crowd')

  it.each([
    ['a multi', multi(), true],
    ['the end of a session', closing(), true],
    ['a creation', createOf('/a'), false],
    ['a stats node in a small tree', createOf('/zookeeper/quota/a/zookeeper_stats'), false],
    ['a change that very many watch', { type: OpCode.delete, path: '/crowd' } as const, true],
    ['a change that few watch', { type: OpCode.delete, path: '/a' } as const, false],
    ['an error', failure, false],
  ])('%s: %s', (_name, txn, may) => {
    expect(appliesInSteps(tree, txn, watched)).toBe(may)
  })

  it('a change of whose watchers nothing is known does not', () => {
    expect(appliesInSteps(tree, { type: OpCode.delete, path: '/crowd' })).toBe(false)
    expect(appliesInSteps(tree, { type: OpCode.delete, path: '/crowd' }, new RecordingReceiver())).toBe(false)
  })

  it('the creation of a stats node in a tree of more than 10,000 nodes does, and no other change', () => {
    const large = (nodeCount: number, txn: Txn): boolean =>
      appliesInSteps(Object.create(tree, { nodeCount: { value: nodeCount } }) as Tree, txn)
    const path = '/zookeeper/quota/a/zookeeper_stats'
    expect(large(10_001, createOf(path))).toBe(true)
    expect(large(10_000, createOf(path))).toBe(false)
    expect(large(10_001, createOf('/zookeeper/quota/a/zookeeper_limits'))).toBe(false)
    expect(large(10_001, { type: OpCode.setACL, path, acl: [], version: 1 })).toBe(false)
    expect(large(10_001, { type: OpCode.setData, path, data: null, version: 1 })).toBe(false)
    expect(large(10_001, failure)).toBe(false)
  })
})

describe('the steps of a transaction', () => {
  it(`have ${STEP} parts of a multi, or nodes that end with a session`, () => {
    const given = new TreeFixture()
    const nodes = paths(2 * STEP + 1)
    const made = given.run(multi(...nodes.map((path) => createOf(path))), new RecordingReceiver())
    expect([made.err, made.steps.map(({ length }) => length)]).toEqual([0, [STEP, STEP, 1]])
    const named = given.run(closing(...nodes), new RecordingReceiver())
    expect(named.steps.map(({ length }) => length)).toEqual([STEP, STEP, 1])
    for (const path of nodes) given.create(path, MINE)
    const found = given.run(closing(), new RecordingReceiver())
    expect(found.steps.map(({ length }) => length)).toEqual([STEP, STEP, 1])
    expect(given.tree.owners.ephemeralCount).toBe(0)
  })

  it('have fewer where long access control lists are looked at for the watchers', () => {
    const given = new TreeFixture()
    const nodes = paths(25)
    const run = (txn: Txn): number[] => {
      const sink = new RecordingReceiver()
      // As many entries as take the time of 9 more parts.
      sink.entriesPerChange = 90
      return given.run(txn, sink).steps.map(({ length }) => length)
    }
    expect(run(multi(...nodes.map((path) => createOf(path))))).toEqual([10, 10, 5])
    expect(run(closing(...nodes))).toEqual([10, 10, 5])
    for (const path of nodes) given.create(path, MINE)
    expect(run(closing())).toEqual([10, 10, 5])
  })

  it('deliver the events of a part before the next part is applied', () => {
    const given = new TreeFixture()
    const sink = new RecordingReceiver()
    sink.eventsPerChange = 2
    const flow = (txn: Txn): string[] => given.run(txn, sink).steps.map((step) => step.join())
    expect(flow(multi(createOf('/a'), createOf('/b')))).toEqual([
      'created /a',
      'event',
      'event,created /b',
      'event',
      'event',
    ])
    expect(flow(closing('/a', '/b'))).toEqual(['deleted /a', 'event', 'event,deleted /b', 'event', 'event'])
    for (const path of ['/a', '/b']) given.create(path, MINE)
    expect(flow(closing())).toEqual(['deleted /a', 'event', 'event,deleted /b', 'event', 'event'])
    expect(flow(createOf('/c'))).toEqual(['created /c', 'event', 'event'])
  })

  it('end with the error of the transaction', () => {
    expect(new TreeFixture().run({ type: OpCode.delete, path: '/none' })).toMatchObject({
      err: ErrorCode.NONODE,
    })
  })

  it('leave what waits for a consistent tree to the end, when the tree has the zxid', () => {
    const given = new TreeFixture()
    const sink = new RecordingReceiver()
    sink.eventsPerChange = 1
    const done: number[] = []
    const zxid = given.tree.lastZxid + 1
    const task = applyInSteps(given.tree, given.header(), createOf('/a'), sink)
    task.next()
    given.tree.whenConsistent(() => done.push(given.tree.lastZxid))
    expect(done).toEqual([])
    task.next()
    expect(done).toEqual([zxid])
    given.tree.whenConsistent(() => done.push(given.tree.lastZxid))
    expect(done).toEqual([zxid, zxid])
  })
})

describe('a multi', () => {
  it('of which a part has failed changes nothing, and each part is reported', () => {
    const given = new TreeFixture()
    const parts: unknown[] = []
    const task = applyInSteps(
      given.tree,
      given.header(),
      multi(createOf('/a'), failure, createOf('/b')),
      undefined,
      (txn, isApplied) => parts.push([txn.type, isApplied, given.tree.has('/a')]),
    )
    expect(task.next().done).toBe(true)
    expect(parts).toEqual([
      [OpCode.create, false, false],
      [OpCode.error, false, false],
      [OpCode.create, false, false],
    ])
  })

  it('reports a part when its events are delivered, before the next one is applied', () => {
    const given = new TreeFixture()
    const sink = new RecordingReceiver()
    sink.eventsPerChange = 1
    const log: string[] = []
    const txn = multi(createOf('/a'), createOf('/b'))
    const task = applyInSteps(given.tree, given.header(), txn, sink, () => sink.note('part'))
    while (task.next().done !== true) log.push(...sink.take())
    log.push(...sink.take())
    expect(log).toEqual(['created /a', 'event', 'part', 'created /b', 'event', 'part'])
  })
})

describe('the end of a session', () => {
  it('removes its nodes, those that the transaction names first, and no other ones', () => {
    const given = new TreeFixture()
    for (const path of ['/a', '/b', '/c']) given.create(path, MINE)
    given.create('/others', OTHERS)
    given.create('/lasting')
    const { steps } = given.run(closing('/b', '/gone'), new RecordingReceiver())
    expect(steps.flat()).toEqual(['deleted /b', 'deleted /a', 'deleted /c'])
    given.create('/a', MINE)
    expect(given.run(closing('/b')).err).toBe(0)
    expect(given.tree.has('/a')).toBe(false)
    expect(['/others', '/lasting'].map((path) => given.tree.has(path))).toEqual([true, true])
  })
})
