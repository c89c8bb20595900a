import { OpCode, WatchMode, writeMultiRequest } from '@zabra/protocol'
import { describe, expect, it, vi } from 'vitest'
import { ManualClock, silentLogger, type System } from '@zabra/runtime'
import { fixedSystem } from '@zabra/testkit'
import { TestServer, type RawClient } from '../testing/test-server.ts'
import { ITEMS_PER_TURN } from '../core/in-slices.ts'
import { MemoryBudget, SESSION_BYTES, type MemoryHolder } from './memory-budget.ts'

const BUDGET = 2_000_000

/** Starts a server with a small budget and connects clients. */
async function start(
  count: number,
): Promise<{ fixture: TestServer; honest: RawClient; greedy: RawClient[] }> {
  const fixture = await TestServer.start({ clientMemoryBytes: BUDGET, maxClientCnxns: 0 })
  const honest = await fixture.connect()
  const greedy = await Promise.all(Array.from({ length: count }, () => fixture.connect({ timeout: 60_000 })))
  return { fixture, honest, greedy }
}

/** The connections that were cut, with what they held, as the log tells. */
const cutsOf = ({ logLines }: TestServer): object[] =>
  logLines.filter(({ sentence }) => sentence.startsWith('Cut the connection')).map(({ facts }) => facts)

/** Expects that a client is served, and that others were cut for the largest of the uses named. */
async function expectCut(fixture: TestServer, honest: RawClient, use: string): Promise<void> {
  honest.frames.length = 0
  honest.create(1, '/honest')
  await fixture.untilIdle()
  expect(honest.takeReceived()).toEqual(['1:0'])
  const cuts = cutsOf(fixture) as Record<string, number>[]
  expect(cuts.length).toBeGreaterThan(0)
  for (const cut of cuts) {
    const uses = { ...cut, client: 0, session: 0, used: 0, budget: 0 }
    expect(Object.values(uses).every((bytes) => bytes <= cut[use]!)).toBe(true)
    expect(cut).toMatchObject({ budget: BUDGET, client: expect.any(String), session: expect.any(String) })
  }
}

describe('the memory for clients, when it is spent', () => {
  it('by short watches of two clients costs the connection with most of them', async () => {
    const { fixture, honest, greedy } = await start(2)
    for (let i = 0; i < 5000; i++)
      for (const client of greedy)
        client.ask(i, OpCode.addWatch, (w) => {
          w.string(`/${i}`)
          w.int(WatchMode.PERSISTENT)
        })
    await fixture.untilIdle()
    expect(greedy.map(({ closed }) => closed)).toContain(true)
    await expectCut(fixture, honest, 'watches')
  })

  it('by replies to multiReads that are not read costs the clients that do not read them', async () => {
    const { fixture, honest, greedy } = await start(20)
    honest.create(1, '/large', 0, 'x'.repeat(10_000))
    await fixture.untilIdle()
    for (const client of greedy) {
      client.connection.pause()
      client.ask(1, OpCode.multiRead, (w) =>
        writeMultiRequest(
          w,
          Array.from({ length: 20 }, () => ({ type: OpCode.getData, path: '/large', watch: false }) as const),
        ),
      )
    }
    await fixture.untilIdle()
    await expectCut(fixture, honest, 'unsent')
  })

  it('by incomplete requests of many sessions costs the connections with the longest', async () => {
    const { fixture, honest, greedy } = await start(100)
    for (const client of greedy) {
      client.connection.write(Uint8Array.of(0, 15, 0, 0))
      for (let sent = 0; sent < 30_000; sent += 1000) client.connection.write(new Uint8Array(1000))
    }
    await fixture.untilIdle()
    await expectCut(fixture, honest, 'partial')
  })

  it('is not spent by the lengths of requests that have not arrived', async () => {
    const { fixture, greedy } = await start(100)
    for (const client of greedy) client.connection.write(Uint8Array.of(0, 15, 0, 0, 1, 2, 3, 4))
    await fixture.untilIdle()
    expect(cutsOf(fixture)).toEqual([])
  })

  it('by requests that wait for a write costs the client with most of them', async () => {
    const { fixture, honest, greedy } = await start(3)
    const release = fixture.blockDisk()
    for (const client of greedy) {
      client.create(1, `/${greedy.indexOf(client)}`)
      for (let i = 2; i < 5000; i++) client.read(i, OpCode.exists, '/')
    }
    await fixture.untilIdle()
    release()
    await expectCut(fixture, honest, 'waiting')
  })

  it('is counted as before once the connections are closed', async () => {
    const { fixture, honest, greedy } = await start(10)
    for (const client of greedy) for (let i = 0; i < 100; i++) client.read(i, OpCode.exists, `/${i}`, true)
    await fixture.untilIdle()
    for (const client of greedy) client.connection.destroy()
    await fixture.untilIdle()
    // One connection after the other could not hold this much if closed ones were still counted.
    for (let round = 0; round < 50; round++) {
      const client = await fixture.connect()
      for (let i = 0; i < 200; i++) client.read(i, OpCode.exists, `/${i}`, true)
      await fixture.untilIdle()
      client.connection.destroy()
      await fixture.untilIdle()
    }
    expect([cutsOf(fixture), honest.closed]).toEqual([[], false])
  })

  it('by sessions that are left open is refused to new sessions and costs no connection', async () => {
    const fixture = await TestServer.start({ clientMemoryBytes: 100 * SESSION_BYTES, maxClientCnxns: 0 })
    const last = async (): Promise<boolean> => {
      const client = await fixture.client()
      const isAccepted = client.frames.length > 0
      client.connection.destroy()
      await fixture.untilIdle()
      return isAccepted
    }
    const accepted: boolean[] = []
    for (let i = 0; i < 60; i++) accepted.push(await last())
    expect(accepted.filter(Boolean)).toHaveLength(51)
    expect(cutsOf(fixture)).toEqual([])
  })
})

describe('MemoryBudget', () => {
  const budgetWith = (system: Partial<System>): MemoryBudget =>
    new MemoryBudget({
      bytes: 0,
      system: { ...fixedSystem, ...system },
      logger: silentLogger,
      clock: new ManualClock(),
      runLater() {},
      sessions: () => 0,
    })

  it('is a quarter of the heap or of the memory of the process, whichever is smaller', () => {
    const of = (heap: number, process: number): number =>
      budgetWith({ memoryLimits: () => ({ heap, process }) }).limit
    expect([of(1000, 4000), of(4000, 800), of(2 ** 40, 2 ** 40)]).toEqual([250, 200, 2 ** 31])
  })

  /** A budget of 2 MB whose later turns a test runs, with 2,000 connections: that of number n holds 500 + n bytes. */
  function given() {
    const lines: object[] = []
    const turns: (() => void)[] = []
    const cut: number[] = []
    let looks = 0
    let sessions = 0
    const budget = new MemoryBudget({
      bytes: 2_000_000,
      system: fixedSystem,
      logger: { ...silentLogger, warn: (facts) => void lines.push(facts) },
      clock: new ManualClock(),
      runLater: (action) => void turns.push(action),
      sessions: () => sessions,
    })
    /** What connections hold that have read replies since they were charged. */
    const held = new Map<number, number>()
    const holders = Array.from({ length: 2000 }, (_, index): MemoryHolder => {
      const number = index + 1
      return {
        host: '10.0.0.1',
        port: number,
        sessionId: 1n,
        chargedBytes: 0,
        previous: undefined,
        next: undefined,
        countMemory() {
          looks++
          budget.charge(this, held.get(number) ?? this.chargedBytes)
        },
        memoryUse: () => ({}),
        destroy() {
          cut.push(number)
          budget.charge(this, 0)
        },
      }
    })
    for (const holder of holders) budget.charge(holder, 500 + holder.port)
    /** Runs a later turn. Returns how many connections it has looked at; undefined when there is none. */
    const runTurn = (): number | undefined => {
      const before = looks
      const turn = turns.shift()
      turn?.()
      return turn === undefined ? undefined : looks - before
    }
    const addSessions = (): void => void (sessions = 1_000_000)
    return { budget, holders, held, lines, cut, runTurn, looks: () => looks, addSessions }
  }

  it('cuts at once what makes room, then a hundred connections in a turn, none much smaller than the largest', () => {
    const { budget, holders, lines, cut, runTurn, looks } = given()
    // The connections of the numbers up to 1,000 or so hold less than the others, and none has been cut to have them.
    expect([looks() <= 2 * cut.length, budget.used <= budget.limit]).toEqual([true, true])
    const atOnce = cut.length
    for (let turn = runTurn(); turn !== undefined; turn = runTurn())
      expect(turn).toBeLessThanOrEqual(ITEMS_PER_TURN)
    expect([cut.length > atOnce, budget.used <= budget.limit * 0.95]).toEqual([true, true])
    const largest = Math.max(...holders.map(({ chargedBytes }) => chargedBytes))
    expect(Math.min(...cut.map((number) => 500 + number))).toBeGreaterThan((largest * 8) / 9)
    expect(lines).toHaveLength(11)
    expect(lines.at(-1)).toEqual({ connections: cut.length - 10 })
  })

  it('counts what a connection holds before it is cut, and looks at a hundred at once', () => {
    const { budget, holders, held, cut, looks, addSessions } = given()
    const [before, looked] = [cut.length, looks()]
    for (const { port } of holders) held.set(port, 100)
    // Half of the budget is left for connections. Their clients have read nearly all of their replies.
    addSessions()
    budget.charge(holders[0]!, 502)
    expect([looks() - looked, cut.length]).toEqual([ITEMS_PER_TURN, before])
    for (let event = 503; budget.used > budget.limit / 2; event++) budget.charge(holders[0]!, event)
    expect(cut.length).toBe(before)
  })

  it('counts the last lines of the log, up to a sixteenth of it', () => {
    const cutsWith = (bytes: number, held: number): number => {
      const lastLines = { bytes, *[Symbol.iterator]() {} }
      const budget = new MemoryBudget({
        bytes: 1600,
        system: fixedSystem,
        logger: { ...silentLogger, lastLines },
        clock: new ManualClock(),
        runLater() {},
        sessions: () => 0,
      })
      const holder = {
        host: '10.0.0.1',
        port: 1,
        sessionId: 1n,
        chargedBytes: 0,
        countMemory() {},
        memoryUse: () => ({}),
        destroy: () => budget.charge(holder, 0),
      } as unknown as MemoryHolder
      budget.charge(holder, held)
      return budget.cuts
    }
    expect([cutsWith(0, 1600), cutsWith(50, 1550), cutsWith(1 << 20, 1500)]).toEqual([0, 0, 0])
    expect([cutsWith(0, 1601), cutsWith(50, 1551), cutsWith(1 << 20, 1501)]).toEqual([1, 1, 1])
  })

  it('refuses sessions while the heap is nearly full, and looks at it ten times a second at most', () => {
    let used = 91
    const heap = vi.fn(() => ({ used, external: 0 }))
    const budget = budgetWith({ memoryLimits: () => ({ heap: 100, process: 100 }), heap })
    expect(budget.refusalOfSession(0)).toContain('heap')
    used = 50
    expect(budget.refusalOfSession(99)).toContain('heap')
    expect(budget.refusalOfSession(100)).toBeUndefined()
    expect(heap).toHaveBeenCalledTimes(2)
  })
})
