import { UnhandledRejections } from '@zabra/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Client } from '@zabra/client/core'
import { client, setupEachTest, run, world } from '../testing/setup.ts'
import { after, enumerateFaults, seedsOf, tree, dropInFlight, withSeeds } from '../testing/fault-fixture.ts'
import { advanceUntilSettled } from '../testing/settle.ts'
import { bytes, text, ManualWorld } from '../testing/world.ts'
import { AmbiguousResultError } from '../support/ambiguous-result.ts'
import { decideTransaction } from './coordinate.ts'
import { decide, isDone, type Decision, type Vote } from './decide.ts'
import { participate, type ParticipantHandlers } from './participate.ts'

setupEachTest('coordinator')

/** Actions of the sites, by site and transaction. */
class Ledger {
  readonly entries: string[] = []
  /** What a site would have stored that stores the id of a transaction with its effect. */
  readonly effects = new Set<string>()
  readonly outcomes = new Map<string, Set<Decision>>()
  readonly failures: unknown[] = []

  handlers(site: string, vote: Vote | (() => Promise<Vote>) = 'commit'): ParticipantHandlers {
    const note = (id: string, outcome: Decision): Promise<void> => {
      this.entries.push(`${site} ${outcome}`)
      this.effects.add(`${site} ${id}`)
      this.outcomes.set(id, (this.outcomes.get(id) ?? new Set()).add(outcome))
      return Promise.resolve()
    }
    return {
      prepare: ({ payload }) => {
        this.entries.push(`${site} prepares ${text(payload)}`)
        return typeof vote === 'function' ? vote() : Promise.resolve(vote)
      },
      commit: ({ id }) => note(id, 'committed'),
      abort: ({ id }) => note(id, 'aborted'),
      onFailed: (error) => void this.failures.push(error),
    }
  }

  /** One decision per transaction, for all callers. */
  checkOneDecision(): void {
    for (const [id, outcomes] of this.outcomes) {
      if (outcomes.size > 1) throw new Error(`${id} was both committed and aborted`)
    }
  }
}

const begin = (on: Client, participants: readonly string[], deadlineMs = 5000): Promise<Decision> =>
  decideTransaction(on, '/t', { participants, payload: bytes('pay'), deadlineMs })

it('is decided by its sites when its coordinator fails while the session of that lives', async () => {
  const ledger = new Ledger()
  const site = participate(await world.client(), '/t', 'a', ledger.handlers('a'))
  await run(site.started)
  // A server without space refuses the decision, once.
  const refused = world.answerWith(-1, { matches: ({ frame }) => text(frame).includes('"committed"') })
  const outcome = begin(client, ['a']).catch((error: unknown) => error)
  await world.advance(1000)
  expect(refused()).toBe(1)
  expect(await outcome).toBeInstanceOf(AmbiguousResultError)
  expect(await outcome).toMatchObject({ cause: { code: 'SYSTEM_ERROR' } })
  expect(ledger.entries).toEqual(['a prepares pay', 'a committed'])
  await world.advance(60_000)
  expect((await run(client.getChildren('/t'))).children).toEqual([])
  await run(site.stop())
})

it('is reported to a site when it is deleted by hand before the site has the decision', async () => {
  const ledger = new Ledger()
  const site = participate(await world.client(), '/t', 'a', ledger.handlers('a'))
  await run(site.started)
  const outcome = begin(client, ['a', 'b'], 60_000).catch((error: unknown) => error)
  await world.advance(1000)
  const [name] = (await run(client.getChildren('/t'))).children
  await run(client.delete(`/t/${name}`, { recursive: true }))
  await world.advance(1000)
  expect(await outcome).toBeInstanceOf(AmbiguousResultError)
  expect(ledger.entries).toEqual(['a prepares pay'])
  expect(ledger.failures).toMatchObject([{ code: 'NO_NODE', path: `/t/${name}` }])
  await run(site.stop())
})

describe('the decision', () => {
  const poll = {
    participants: ['a', 'b'],
    votes: new Map(),
    lost: new Set<string>(),
    isDeadlinePassed: false,
    isGivenUp: false,
  }
  const votes = (entries: Record<string, Vote>): Map<string, Vote> => new Map(Object.entries(entries))

  it('is committed when all sites vote to commit, late or not', () => {
    expect(decide({ ...poll, votes: votes({ a: 'commit', b: 'commit' }), isDeadlinePassed: true })).toBe(
      'committed',
    )
  })

  it('is aborted on one vote to abort, without waiting for others', () => {
    expect(decide({ ...poll, votes: votes({ a: 'abort' }) })).toBe('aborted')
  })

  it('is open until the deadline, the loss of a site without a vote, or a give-up', () => {
    const one = { ...poll, votes: votes({ a: 'commit' }) }
    expect(decide(one)).toBeUndefined()
    expect(decide({ ...one, lost: new Set(['a']) })).toBeUndefined()
    expect(decide({ ...one, lost: new Set(['b']) })).toBe('aborted')
    expect(decide({ ...one, isDeadlinePassed: true })).toBe('aborted')
    expect(decide({ ...one, isGivenUp: true })).toBe('aborted')
  })

  it('is deleted when all sites have applied it and the coordinator knows it or is gone', () => {
    expect([isDone(poll, 1, false), isDone(poll, 2, true), isDone(poll, 2, false)]).toEqual([
      false,
      false,
      true,
    ])
  })
})

async function sites(
  ledger: Ledger,
  votes: Record<string, Vote | (() => Promise<Vote>)>,
): Promise<Map<string, Client>> {
  const clients = new Map<string, Client>()
  for (const [site, vote] of Object.entries(votes)) {
    const own = await world.client({ servers: `${site}:2181` })
    participate(own, '/t', site, ledger.handlers(site, vote))
    clients.set(site, own)
  }
  await world.settle()
  return clients
}

describe('a transaction', () => {
  it('commits when all sites agree, and is deleted', async () => {
    const ledger = new Ledger()
    await sites(ledger, { a: 'commit', b: 'commit' })
    expect(await run(begin(client, ['a', 'b']))).toBe('committed')
    await world.settle()
    expect(ledger.entries.toSorted()).toEqual([
      'a committed',
      'a prepares pay',
      'b committed',
      'b prepares pay',
    ])
    expect(await run(tree(client, '/t'))).toEqual(['/t'])
    expect(ledger.failures).toEqual([])
  })

  it('aborts at every site when one votes to abort', async () => {
    const ledger = new Ledger()
    await sites(ledger, { a: 'commit', b: 'abort' })
    expect(await run(begin(client, ['a', 'b']))).toBe('aborted')
    await world.settle()
    expect(ledger.entries.filter((entry) => entry.endsWith('aborted'))).toHaveLength(2)
    expect(await run(tree(client, '/t'))).toEqual(['/t'])
  })

  it('aborts when a site cannot prepare, and reports the error', async () => {
    const ledger = new Ledger()
    await sites(ledger, { a: () => Promise.reject(new Error('disk full')) })
    expect(await run(begin(client, ['a']))).toBe('aborted')
    await world.settle()
    expect(ledger.failures).toMatchObject([{ message: 'disk full' }])
  })

  it('involves only its participants', async () => {
    const ledger = new Ledger()
    await sites(ledger, { a: 'commit', other: 'abort' })
    expect(await run(begin(client, ['a']))).toBe('committed')
    await world.settle()
    expect(ledger.entries.some((entry) => entry.startsWith('other'))).toBe(false)
  })

  it('aborts at the deadline when a site is missing, and informs the site when it returns', async () => {
    const ledger = new Ledger()
    await sites(ledger, { a: 'commit' })
    const outcome = begin(client, ['a', 'late'])
    expect(await world.within(6000, outcome)).toBe('aborted')
    await sites(ledger, { late: 'commit' })
    await world.settle()
    expect(ledger.entries).toContain('late aborted')
    expect(await run(tree(client, '/t'))).toEqual(['/t'])
  })

  it('aborts before the deadline when a site without a vote is lost', async () => {
    const ledger = new Ledger()
    const clients = await sites(ledger, { a: 'commit', b: () => new Promise(() => {}) })
    const outcome = begin(client, ['a', 'b'], 60_000)
    await world.settle()
    await run(clients.get('b')!.close())
    expect(await run(outcome)).toBe('aborted')
  })

  it('ignores a late vote after it was aborted', async () => {
    const ledger = new Ledger()
    let vote: (vote: Vote) => void = () => {}
    await sites(ledger, { a: () => new Promise((resolve) => (vote = resolve)) })
    expect(await world.within(6000, begin(client, ['a']))).toBe('aborted')
    vote('commit')
    await world.settle()
    expect(ledger.entries).toEqual(['a prepares pay', 'a aborted'])
  })

  it('aborts by the signal of its coordinator', async () => {
    const ledger = new Ledger()
    await sites(ledger, { a: () => new Promise(() => {}) })
    const abort = new AbortController()
    const outcome = decideTransaction(client, '/t', {
      participants: ['a'],
      payload: bytes('pay'),
      deadlineMs: 60_000,
      signal: abort.signal,
    })
    await world.settle()
    abort.abort()
    expect(await run(outcome)).toBe('aborted')
  })

  it('aborts at the deadline when another client has overwritten a vote', async () => {
    const outcome = begin(client, ['a'], 1000)
    await world.settle()
    const admin = await world.client()
    const [id] = (await run(admin.getChildren('/t'))).children
    for (const vote of ['abort?', 'commit']) await run(admin.setData(`/t/${id}/votes/a`, vote))
    expect(await world.within(2000, outcome)).toBe('aborted')
  })

  it('is decided by a site when the coordinator is lost', async () => {
    const ledger = new Ledger()
    let vote: (vote: Vote) => void = () => {}
    await sites(ledger, { a: 'commit', b: () => new Promise((resolve) => (vote = resolve)), c: 'commit' })
    const outcome = begin(client, ['a', 'b', 'c'], 60_000)
    outcome.catch(() => {})
    await world.settle()
    await run(client.close())
    await world.settle()
    vote('commit')
    await world.settle()
    expect(ledger.entries.filter((entry) => entry.endsWith('committed')).toSorted()).toEqual([
      'a committed',
      'b committed',
      'c committed',
    ])
    const observer = await world.client()
    expect(await run(tree(observer, '/t'))).toEqual(['/t'])
  })

  it('rejects duplicate participants', async () => {
    await expect(begin(client, [])).rejects.toThrow('at least one')
    await expect(begin(client, ['a', 'a'])).rejects.toThrow('different')
  })

  it('costs each of two hundred participants a constant number of messages', async () => {
    const ledger = new Ledger()
    let messages = 0
    const count = { request: () => void messages++, event: () => void messages++ }
    const names = Array.from({ length: 200 }, (_, n) => `site ${n}`)
    const shared = await world.client({ instrumentation: count })
    for (const name of names) participate(shared, '/t', name, ledger.handlers(name))
    const coordinator = await world.client({ instrumentation: count })
    await world.settle()
    messages = 0
    expect(await world.within(2000, begin(coordinator, names))).toBe('committed')
    await world.advance(1000)
    expect(ledger.entries.filter((entry) => entry.endsWith('committed'))).toHaveLength(200)
    expect(messages).toBeLessThan(200 * 30)
  })

  it('leaves no watch when a site stops', async () => {
    const ledger = new Ledger()
    const own = await world.client()
    const site = participate(
      own,
      '/t',
      'a',
      ledger.handlers('a', () => new Promise(() => {})),
    )
    const other = participate(own, '/t', 'b', ledger.handlers('b'))
    void begin(client, ['b', 'never'], 60_000).catch(() => {})
    await world.settle()
    await run(Promise.all([site.stop(), other.stop()]))
    await run(client.close())
    await world.settle()
    expect(world.server.stats().watches).toBe(0)
  })
})

/** Lets a host send this many chunks and dies then: nothing of it reaches the servers any more. */
function killAfter(own: ManualWorld, host: string, chunks: number): { readonly sent: () => number } {
  let sent = 0
  own.faults.open = (server) => {
    if (server.host === host && sent > chunks) throw new Error('dead')
  }
  own.faults.toServer = (chunk, connection) => {
    if (connection.server.host !== host) return chunk
    sent++
    if (sent <= chunks) return chunk
    own.clock.immediate(() => connection.cut())
    return undefined
  }
  return { sent: () => sent }
}

/**
 * Runs a transaction of two sites in which one host dies after `chunks`; returns how many chunks it tried to send, and how often
 * the handlers of site b were called.
 */
async function playDeath(
  host: 'coordinator' | 'b',
  chunks: number,
): Promise<{ sent: number; calls: number }> {
  const own = await ManualWorld.start()
  const ledger = new Ledger()
  const [a, b, coordinator] = await Promise.all(
    ['a', 'b', 'coordinator'].map((name) => own.client({ servers: `${name}:2181` })),
  )
  participate(a!, '/t', 'a', ledger.handlers('a'))
  participate(b!, '/t', 'b', ledger.handlers('b'))
  await own.advance(100)
  const { sent } = killAfter(own, host, chunks)
  begin(coordinator!, ['a', 'b']).catch(() => {})
  await own.advance(60_000)
  if (host === 'b' && sent() > chunks) {
    participate(await own.client(), '/t', 'b', ledger.handlers('b'))
    await own.advance(60_000)
  }
  const count = (entry: string): number => ledger.entries.filter((each) => each === entry).length
  const where = `${host} dead after ${chunks} chunks: ${ledger.entries.join()}`
  ledger.checkOneDecision()
  expect(ledger.failures, where).toEqual([])
  const left = await own.outcome(tree(await own.client()))
  expect(
    left.filter((path) => path.startsWith('/t/')),
    where,
  ).toEqual([])
  const calls = count('b committed') + count('b aborted')
  // Between the handler and its acknowledgement a site cannot know whether it was called.
  expect(count('a committed') + count('a aborted'), where).toBeLessThanOrEqual(1)
  expect(calls, where).toBeLessThanOrEqual(host === 'b' ? 2 : 1)
  // Calls of one transaction have one id, by which a site applies it once.
  for (const site of ['a', 'b'])
    expect([...ledger.effects].filter((one) => one.startsWith(site)).length, where).toBeLessThanOrEqual(1)
  await own.end()
  return { sent: sent(), calls }
}

it.each([
  ['coordinator', 'called once', 1],
  ['b', 'called again with the same id by a site that dies before its acknowledgement', 2],
] as const)(
  'a transaction is deleted wherever %s dies, and its handlers are %s',
  async (host, _, most) => {
    let chunks = 1
    let calls = 0
    for (; ; chunks++) {
      const played = await playDeath(host, chunks)
      calls = Math.max(calls, played.calls)
      if (played.sent <= chunks) break
    }
    expect(chunks).toBeGreaterThan(5)
    expect(calls).toBe(most)
  },
  300_000,
)

it('a site that takes part anew does not apply a transaction twice', async () => {
  const ledger = new Ledger()
  const own = await world.client()
  const steady = participate(own, '/t', 'a', ledger.handlers('a'))
  await world.settle()
  void begin(client, ['a', 'b'])
  await world.settle()
  const [tx] = await run(client.getChildren('/t').then(({ children }) => children))
  participate(await world.client(), '/t', 'b', {
    ...ledger.handlers('b'),
    // Never acknowledged, so that the transaction stays.
    commit: () => new Promise(() => {}),
  })
  await world.settle()
  expect(ledger.entries.filter((entry) => entry === 'a committed')).toHaveLength(1)
  const left = steady.stop()
  await world.settle()
  await left
  participate(own, '/t', 'a', ledger.handlers('a'))
  await world.settle()
  expect(await run(client.exists(`/t/${tx}`))).toBeDefined()
  expect(ledger.entries.filter((entry) => entry === 'a committed')).toHaveLength(1)
})

it('a directory that a late take-over has left is no transaction', async () => {
  const ledger = new Ledger()
  await sites(ledger, { a: 'commit' })
  await run(client.createMissing([{ path: '/t/tx-gone/line', mode: 'container' }]))
  await world.settle()
  expect(ledger).toMatchObject({ entries: [], failures: [] })
  expect(await run(begin(client, ['a']))).toBe('committed')
})

it('example: a transfer between two banks', async () => {
  const ledger = new Ledger()
  await sites(ledger, { 'bank-a': 'commit', 'bank-b': 'commit' })
  const outcome = await run(
    decideTransaction(client, '/t', {
      participants: ['bank-a', 'bank-b'],
      payload: bytes('100'),
      deadlineMs: 5000,
    }),
  )
  expect(outcome).toBe('committed')
})

it('has one decision under any fault at any request of the coordinator', async () => {
  await enumerateFaults(async (fixture, victim) => {
    const ledger = new Ledger()
    const running = await Promise.all(
      ['a', 'b'].map(async (site) =>
        participate(await fixture.world.client(), '/t', site, ledger.handlers(site)),
      ),
    )
    const decided = await decideTransaction(victim.client, '/t', {
      participants: ['a', 'b'],
      payload: bytes('pay'),
      deadlineMs: 5000,
      signal: victim.abort.signal,
    }).catch((error: unknown) => {
      if (!(error instanceof AmbiguousResultError)) throw error
    })
    await fixture.waitUntilQuiet()
    ledger.checkOneDecision()
    if (ledger.failures.length > 0) throw ledger.failures[0]
    const [applied] = [...ledger.outcomes.values()].flatMap((each) => [...each])
    if (decided !== undefined && applied !== decided)
      throw new Error(`decided ${decided}, but applied ${applied}`)
    await Promise.all(running.map((site) => site.stop()))
    const left = await tree(await fixture.world.client())
    if (left.some((path) => path.startsWith('/t/'))) throw new Error(`left behind: ${left.join(' ')}`)
  })
})

it('has one decision under any fault at any request of a site', async () => {
  await enumerateFaults(async (fixture, victim) => {
    const ledger = new Ledger()
    const coordinator = await fixture.world.client()
    const steady = participate(await fixture.world.client(), '/t', 'a', ledger.handlers('a'))
    let shaky = participate(victim.client, '/t', 'b', ledger.handlers('b'))
    const decided = await decideTransaction(coordinator, '/t', {
      participants: ['a', 'b'],
      payload: bytes('p'),
      deadlineMs: 60_000,
    })
    if (victim.abort.signal.aborted) {
      await shaky.stop()
      shaky = participate(victim.client, '/t', 'b', ledger.handlers('b'))
    }
    await fixture.waitUntilQuiet()
    ledger.checkOneDecision()
    if (ledger.failures.length > 0) throw ledger.failures[0]
    const applied = new Set(ledger.entries.filter((entry) => entry.endsWith(decided)))
    if (applied.size !== 2) throw new Error(`decided ${decided}, but sites say ${ledger.entries.join()}`)
    await Promise.all([steady, shaky].map((site) => site.stop()))
  })
})

it('is decided once among random deaths of coordinators and cuts of sites', async () => {
  // 52: a site stopped when it lost the reply to its presence request.
  await withSeeds([...seedsOf(6), 52], async (random) => {
    const own = await ManualWorld.start()
    const ledger = new Ledger()
    const names = Array.from({ length: 3 + random.below(6) }, (_, n) => `s${n}`)
    let vetoed = false
    for (const name of names) {
      const vote: Vote = random.below(12) === 0 ? 'abort' : 'commit'
      vetoed ||= vote === 'abort'
      participate(await own.client(), '/t', name, ledger.handlers(name, vote))
    }
    const decided: Promise<Decision | undefined>[] = []
    const coordinators = await Promise.all([1, 2, 3, 4].map(() => own.client()))
    const heal = dropInFlight(own, random)
    for (const coordinator of coordinators) {
      decided.push(begin(coordinator, names).catch(() => undefined))
      await own.advance(random.below(100))
      if (random.below(2) === 0) void coordinator.close()
      own.connections[random.below(own.connections.length)]!.cut()
    }
    heal()
    await advanceUntilSettled(own, 60_000, Promise.all(decided))
    await advanceUntilSettled(own, 60_000, after(own, 20_000))
    ledger.checkOneDecision()
    expect(ledger.failures).toEqual([])
    const left = await advanceUntilSettled(own, 60_000, tree(await own.client()))
    expect(left.filter((path) => path.startsWith('/t/'))).toEqual([])
    const all = [...ledger.outcomes.values()].flatMap((outcomes) => [...outcomes])
    expect(vetoed && all.includes('committed')).toBe(false)
    expect([...ledger.outcomes.values()].every((outcomes) => outcomes.size === 1)).toBe(true)
    await own.end()
  })
})

describe('a handler of a site', () => {
  const twoSites = async (bad: ParticipantHandlers, good: ParticipantHandlers): Promise<Decision> => {
    const sites = [participate(client, '/t', 'a', bad), participate(client, '/t', 'b', good)]
    await run(Promise.all(sites.map(({ started }) => started)))
    const decision = await world.within(10_000, begin(client, ['a', 'b'], 600_000))
    await world.advance(1000)
    await run(Promise.all(sites.map(({ stop }) => stop())))
    return decision
  }

  it.each([
    [
      'throws',
      () => {
        throw new Error('onFailed')
      },
    ],
    ['rejects', () => Promise.reject(new Error('onFailed'))],
  ])(
    'that receives failures and %s keeps no site from its vote, and is no unhandled rejection',
    async (_name, onFailed) => {
      const unhandled = new UnhandledRejections()
      unhandled.begin()
      onTestFinished(unhandled.end)
      const ledger = new Ledger()
      const no = (): Promise<never> => Promise.reject(new Error('prepare'))
      const bad = { ...ledger.handlers('a', no), onFailed: onFailed as () => void }
      expect(await twoSites(bad, ledger.handlers('b'))).toBe('aborted')
      const failing = { ...ledger.handlers('a'), commit: no, onFailed: onFailed as () => void }
      expect(await twoSites(failing, ledger.handlers('b'))).toBe('committed')
      expect(await unhandled.reasons()).toEqual([])
    },
  )

  it('that prepares and returns no vote aborts, and its failure says what was expected', async () => {
    const ledger = new Ledger()
    const none = (() => Promise.resolve()) as unknown as () => Promise<Vote>
    expect(await twoSites(ledger.handlers('a', none), ledger.handlers('b'))).toBe('aborted')
    expect(ledger.failures).toMatchObject([
      { code: 'USAGE', message: expect.stringContaining("Expected a vote as 'commit' or 'abort', got") },
    ])
  })
})
