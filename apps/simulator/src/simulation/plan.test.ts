import { expect, it } from 'vitest'
import { MEMBERSHIP_CHANGES } from './fault.ts'
import { GROUPS } from './ensemble-plan.ts'
import { drawPlan } from './plan.ts'
import { initialRoles, votersWith } from './membership-text.ts'

const LEVEL_FAULTS: ReadonlySet<string> = new Set(['finalize', 'install', 'interruptFinalize'])

it('plans with a stale leader have clients that only read', () => {
  const plans = Array.from({ length: 100 }, (_, seed) => drawPlan(seed, { minutes: 0.05 }))
  const deposing = plans.filter(({ faults }) => faults.some(({ kind }) => kind === 'staleLeader'))
  expect(deposing.length).toBeGreaterThan(5)
  for (const { servers, clients } of deposing) {
    expect(servers).toBeGreaterThan(1)
    expect(
      clients.filter(({ weights }) => weights.set === undefined && (weights.sync ?? 0) > 0).length,
    ).toBeGreaterThan(0)
  }
})

it('some plans have observers, non-members and all kinds of membership changes', () => {
  const plans = Array.from({ length: 200 }, (_, seed) => drawPlan(seed, { servers: 5, minutes: 0.05 }))
  const kinds = new Set<string>(plans.flatMap(({ faults }) => faults.map(({ kind }) => kind)))
  expect([...MEMBERSHIP_CHANGES].filter((kind) => !kinds.has(kind))).toEqual([])
  for (const [observers, outsiders] of [
    [1, 0],
    [2, 0],
    [1, 1],
  ])
    expect(
      plans.some((plan) => plan.observers.length === observers && plan.nonMembers.length === outsiders),
    ).toBe(true)
  // The remaining members tolerate one failure.
  for (const plan of plans) expect(plan.observers.length + plan.nonMembers.length).toBeLessThanOrEqual(2)
})

it('plans cover every disk fault and every operation', () => {
  const plans = Array.from({ length: 200 }, (_, seed) => drawPlan(seed, { servers: 3, minutes: 0.1 }))
  const kinds = new Set(plans.flatMap(({ faults }) => faults.map(({ kind }) => kind)))
  for (const kind of ['powerCut', 'tornWrite', 'powerCutAll', 'slowDisk', 'fullDisk', 'syncError'] as const)
    expect(kinds).toContain(kind)
  expect(plans.filter(({ disk }) => disk.reordersSectors).length).toBeGreaterThan(30)
  expect(plans.filter(({ settings }) => settings.localSessions).length).toBeGreaterThan(20)
  const operations = new Set(
    plans.flatMap(({ clients }) => clients.flatMap(({ weights }) => Object.keys(weights))),
  )
  for (const operation of [
    'multiRead',
    'checkWatches',
    'removeWatches',
    'whoAmI',
    'prove',
    'quota',
    'quotaUse',
    'conditional',
    'manyEphemerals',
  ])
    expect(operations).toContain(operation)
})

it('some plans shut servers down and hand over leadership', () => {
  const plans = Array.from({ length: 100 }, (_, seed) => drawPlan(seed, { servers: 3 }))
  const kinds = new Set(plans.flatMap(({ faults }) => faults.map(({ kind }) => kind)))
  expect([kinds.has('stop'), kinds.has('handOver')]).toEqual([true, true])
})

it('some plans interrupt reconfigurations', () => {
  const plans = Array.from({ length: 100 }, (_, seed) => drawPlan(seed, { servers: 5 }))
  const ways = plans.flatMap(({ faults }) =>
    faults.flatMap((one) => (one.kind === 'interruptReconfig' ? [one.how] : [])),
  )
  expect([...new Set(ways)].sort()).toEqual(['isolate', 'kill', 'powerCut', 'reset'])
})

it('the groups feature adds groups and leaves the rest of the plan unchanged', () => {
  const plans = Array.from({ length: 200 }, (_, seed) => drawPlan(seed, { servers: 5 }))
  const grouped = plans.filter(({ groups }) => groups !== undefined).length
  expect(grouped).toBeGreaterThan(10)
  expect(grouped).toBeLessThan(50)
  for (const plan of plans.slice(0, 20)) {
    const withGroups = drawPlan(plan.seed, { servers: 5, features: ['groups'] })
    expect(withGroups.groups!.members.flat().sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5])
    expect({ ...plan, groups: withGroups.groups }).toEqual(withGroups)
  }
})

it('the read-only feature takes the quorum away for long enough to serve read-only clients', () => {
  const plans = Array.from({ length: 20 }, (_, seed) =>
    drawPlan(seed, { servers: 3, minutes: 0.05, features: ['read-only'] }),
  )
  for (const { readOnly, clients, faults, loadMs } of plans) {
    expect(readOnly).toBe(true)
    expect(clients.filter((client) => client.readOnly === true).length).toBe(3)
    const lonely = faults.filter(({ at, forMs }) => forMs > 5000 && at + forMs < loadMs)
    expect(lonely.length).toBeGreaterThan(0)
  }
})

it('the observer-masters feature adds observers', () => {
  for (const servers of [3, 5])
    for (let seed = 0; seed < 30; seed++) {
      const plan = drawPlan(seed, { servers, features: ['observer-masters'] })
      expect(plan.observerMasters).toBe(true)
      expect(plan.observers.length).toBeGreaterThan(0)
      expect(servers - plan.observers.length - plan.nonMembers.length).toBeGreaterThan(1)
    }
})

it('the strangers of a run have the address of at most one server, which is no quorum of the first voters', () => {
  const layouts = new Set<unknown>()
  for (let seed = 0; seed < 300; seed++) {
    const plan = drawPlan(seed, { servers: seed % 2 === 0 ? 3 : 5, features: ['groups', 'strangers'] })
    const known = new Set(
      plan.faults.flatMap((fault) =>
        fault.kind === 'stranger' && fault.from === 'server' ? [fault.server] : [],
      ),
    )
    expect(known.size, `seed ${seed}`).toBeLessThanOrEqual(1)
    const { isQuorum } = votersWith(initialRoles(plan), plan.groups)
    expect(
      isQuorum((id) => known.has(id)),
      `seed ${seed}`,
    ).toBe(false)
    if (known.size > 0 && plan.observers.length > 0) layouts.add(plan.groups)
  }
  expect(layouts).toEqual(new Set([3, 5].flatMap((servers) => GROUPS[servers]!)))
})

it('the oracle of an ensemble lets the same one of its two voters lead alone each time', () => {
  for (let seed = 0; seed < 30; seed++) {
    const plan = drawPlan(seed, { servers: 3, minutes: 0.1, features: ['oracle'] })
    // Groups and an oracle exclude each other.
    if (plan.groups !== undefined) continue
    const others = plan.faults.flatMap((fault) => (fault.kind === 'alone' ? [fault.server] : []))
    expect(new Set(others).size, `seed ${seed}`).toBe(1)
    expect(new Set([plan.oracle, others[0], plan.observers[0]]).size, `seed ${seed}`).toBe(3)
    expect(
      plan.faults.some(({ kind }) => MEMBERSHIP_CHANGES.has(kind)),
      `seed ${seed}`,
    ).toBe(false)
  }
})

it('thieves try to resume sessions of clients that log in, where servers can store the users of sessions', () => {
  const plans = Array.from({ length: 60 }, (_, seed) =>
    drawPlan(seed, { servers: 3, minutes: 0.1, features: ['logins'] }),
  )
  let thieves = 0
  for (const { seed, clients, faults, nonMembers } of plans)
    for (const fault of faults) {
      if (fault.kind !== 'thief' || !/sam|sue/.test(clients[fault.client]!.user)) continue
      thieves++
      expect(nonMembers, `seed ${seed}`).toEqual([])
      expect(
        faults.some(({ kind }) => kind === 'fullDisk'),
        `seed ${seed}`,
      ).toBe(false)
    }
  expect(thieves).toBeGreaterThan(60)
})

it('thieves try to resume sessions of clients with certificates, and the rest of the plan stays as it is', () => {
  let thieves = 0
  for (let seed = 0; seed < 40; seed++) {
    const plan = drawPlan(seed, { servers: 3, minutes: 0.1, features: ['certificates'] })
    const stolen = plan.faults.flatMap((fault) => (fault.kind === 'thief' ? [fault.client] : []))
    thieves += stolen.length
    if (plan.logins !== true)
      for (const client of stolen) expect(plan.clients[client]!.user, `seed ${seed}`).toMatch(/tom|tia/)
    const without = drawPlan(seed, { servers: 3, minutes: 0.1 })
    if (without.certificates === true) continue
    const unproved = ({ user: _user, ...client }: (typeof plan.clients)[number]): object => client
    expect(plan.clients.map(unproved), `seed ${seed}`).toEqual(without.clients.map(unproved))
    expect(plan.faults.filter(({ kind }) => kind !== 'thief')).toEqual(
      without.faults.filter(({ kind }) => kind !== 'thief'),
    )
  }
  expect(thieves).toBeGreaterThan(60)
})

it('the finalize feature asks for levels, mixes releases and leaves the rest of the plan unchanged', () => {
  const kinds = new Set<string>()
  const releases = new Set<number>()
  let mixed = 0
  for (let seed = 0; seed < 60; seed++) {
    const plan = drawPlan(seed, { servers: 5, minutes: 0.1, features: ['finalize'] })
    const { levels, ...others } = plan
    for (const level of levels!.first) releases.add(level)
    if (new Set(levels!.first).size > 1) mixed++
    const ofLevels = others.faults.filter(({ kind }) => LEVEL_FAULTS.has(kind))
    for (const { kind } of ofLevels) kinds.add(kind)
    const without = drawPlan(seed, { servers: 5, minutes: 0.1 })
    if (without.levels !== undefined) continue
    expect({ ...others, faults: others.faults.filter((fault) => !ofLevels.includes(fault)) }).toEqual(without)
  }
  expect(kinds).toEqual(LEVEL_FAULTS)
  expect(releases).toEqual(new Set([0, 1, 2, 3]))
  expect(mixed).toBeGreaterThan(20)
})
