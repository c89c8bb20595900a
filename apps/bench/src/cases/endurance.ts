import { busyFlags, longestTurn, turnsSince, type Turn } from '../busy.ts'
import { Churn } from '../churn.ts'
import type { Note } from '../figures.ts'
import { heapFlags, memorySince, type MemorySample } from '../heap.ts'
import { load } from '../load.ts'
import { fourLetterWord, type Peer } from '../peers.ts'
import { growth, mntrFigures, rise, secondHalf, type Point } from '../series.ts'
import { withPeer, withNodeFlags, type Case, type CaseContext } from './case.ts'

/** A moderate load, in requests per second. */
const RATE = 4000
const MIXED = ['-m', 'mixed', '-c', '20', '-d', '8', '-k', '2000', '--reads', '80', '--size', '100']
/** Longest acceptable pause of the event loop. */
const PAUSE_MS = 20
/** Busy time below which event loop turns are not recorded, because recording would disturb the run. */
const BUSY_MS = 5
/** Growth of the second half, as a share, up to which memory counts as flat. */
const FLAT_SHARE = 0.05

/** The parts of resident memory; they add up to all of it. */
const parts: Readonly<Record<string, (memory: MemorySample) => number>> = {
  'young generation': ({ young }) => young,
  'old generation': ({ old }) => old,
  'buffers outside of the heap': ({ external }) => external,
  'program, stacks and all else': ({ resident, young, old, external }) => resident - young - old - external,
}
const LIVE_HEAP = 'heap in use after full collections'

/** The sampled keys of `mntr`, with the unit of their series. */
const sampled = [
  { name: 'heap in use', unit: 'MB', key: 'heap_used_bytes', per: 1e6 },
  { name: 'memory outside of the heap', unit: 'MB', key: 'external_memory_bytes', per: 1e6 },
  { name: 'event loop held', unit: 'ms', key: 'max_event_loop_hold_ms', per: 1 },
  { name: 'longest collection', unit: 'ms', key: 'max_gc_pause_ms', per: 1 },
  { name: 'longest snapshot', unit: 'ms', key: 'max_snapshottime', per: 1 },
  { name: 'longest durable write', unit: 'ms', key: 'max_fsynctime', per: 1 },
  { name: 'znodes', unit: '', key: 'znode_count', per: 1 },
  { name: 'sessions', unit: '', key: 'global_sessions', per: 1 },
] as const
const RESIDENT = 'resident memory'

interface Samples {
  readonly points: ReadonlyMap<string, readonly Point[]>
  /** Long turns of the event loop, with their ends in seconds of the run; undefined for a peer that records none. */
  readonly turns: readonly Turn[] | undefined
  /** Memory samples; undefined for a peer that records none. */
  readonly memory: readonly MemorySample[] | undefined
}

/** Samples a server until `over` settles and resets its maxima after each sample. */
async function sample(peer: Peer, everyMs: number, over: Promise<unknown>): Promise<Samples> {
  const samples = new Map<string, Point[]>()
  const add = (name: string, at: number, value: number): void => {
    const points = samples.get(name)
    if (points === undefined) samples.set(name, [{ at, value }])
    else points.push({ at, value })
  }
  let hasEnded = false
  const ended = over.then(
    () => (hasEnded = true),
    () => (hasEnded = true),
  )
  // Reset the maxima of the time before the run.
  await fourLetterWord(peer.ports[0]!, 'srst')
  const [began, beganAt] = [performance.now(), Date.now()]
  const turns = turnsSince(peer.leaderFolder)
  for (;;) {
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, everyMs))])
    if (hasEnded) {
      const timed = <T extends { readonly at: number }>(one: T): T => ({
        ...one,
        at: (one.at - beganAt) / 1000,
      })
      const memory = memorySince(peer.leaderFolder, beganAt)?.map(timed)
      return { points: samples, turns: turns()?.map(timed), memory }
    }
    const figures = mntrFigures(await fourLetterWord(peer.ports[0]!, 'mntr'))
    await fourLetterWord(peer.ports[0]!, 'srst')
    const at = (performance.now() - began) / 1000
    add(RESIDENT, at, peer.residentBytes() / 1e6)
    for (const { name, key, per } of sampled) {
      const value = figures.get(key)
      if (value !== undefined) add(name, at, value / per)
    }
  }
}

function report({ note, record }: CaseContext, samples: Samples['points']): void {
  record(RESIDENT, 'MB', samples.get(RESIDENT) ?? [])
  for (const { name, unit } of sampled) {
    const points = samples.get(name)
    if (points !== undefined) record(name, unit, points)
  }
  for (const name of [RESIDENT, 'heap in use']) noteGrowth(note, name, samples.get(name) ?? [])
  for (const name of ['event loop held', 'longest collection']) {
    const points = samples.get(name)
    if (points === undefined) continue
    const figure = {
      name: `${name}, of the whole run`,
      unit: 'ms',
      better: 'lower',
      limit: PAUSE_MS,
    } as const
    note(figure, maximum(points))
  }
}

/** Records the growth and the maximum of a series in the second half of the run. */
function noteGrowth(note: Note, name: string, points: readonly Point[]): void {
  const later = secondHalf(points)
  if (later.length < 3) return
  const limit = FLAT_SHARE * 100
  note({ name: `${name}: growth in the second half`, unit: '%', better: 'lower', limit }, growth(later) * 100)
  note({ name: `${name}: at most`, unit: 'MB', better: 'lower' }, maximum(later))
}

/** Records when long event loop turns occurred and where their time went. */
function reportTurns({ note, record }: CaseContext, turns: readonly Turn[]): void {
  const draw = (what: string, value: (turn: Turn) => number): void =>
    record(
      `long turns: ${what}`,
      'ms',
      turns.map((turn) => ({ at: turn.at, value: value(turn) })),
    )
  draw('held', ({ held }) => held)
  draw('busy', ({ busy }) => busy)
  draw('without a processor', ({ starved }) => starved)
  draw('waiting to be woken', ({ idle }) => idle)
  const lower = (name: string, unit: string, value: number): void =>
    note({ name, unit, better: 'lower' }, value)
  const [held, busy] = [longestTurn(turns, 'held'), longestTurn(turns, 'busy')]
  const limit = PAUSE_MS
  note({ name: 'event loop busy, of the whole run', unit: 'ms', better: 'lower', limit }, busy?.busy ?? 0)
  if (busy) lower('busiest turn: ended after', 's', busy.at)
  if (!held) return
  lower('turn held for longest: ended after', 's', held.at)
  lower('turn held for longest: held', 'ms', held.held)
  lower('turn held for longest: busy', 'ms', held.busy)
  lower('turn held for longest: without a processor', 'ms', held.starved)
  lower('turn held for longest: waiting to be woken', 'ms', held.idle)
}

/** Records the growth of each part of resident memory and of the live heap. */
function reportMemory({ note, record }: CaseContext, memory: readonly MemorySample[]): void {
  const points = (of: readonly MemorySample[], value: (one: MemorySample) => number): Point[] =>
    of.map((one) => ({ at: one.at, value: value(one) / 1e6 }))
  const regular = memory.filter(({ isCollected }) => !isCollected)
  for (const [name, value] of Object.entries(parts)) {
    const all = points(regular, value)
    record(name, 'MB', all)
    const later = secondHalf(all)
    if (later.length < 3) continue
    // The line through constant values rises by a rounding error.
    const rounded = Math.round(rise(later) * 100) / 100
    note({ name: `${name}: growth in the second half`, unit: 'MB', better: 'lower' }, rounded)
  }
  const alive = points(
    memory.filter(({ isCollected }) => isCollected),
    ({ used }) => used,
  )
  record(LIVE_HEAP, 'MB', alive)
  noteGrowth(note, LIVE_HEAP, alive)
}

const maximum = (points: readonly Point[]): number => Math.max(...points.map(({ value }) => value))

/** Measures memory growth and the longest pause over many minutes. */
export const enduranceCase: Case = {
  name: 'endurance',
  about: 'a moderate mixed load with churn of nodes, watches and sessions, over many minutes (--minutes)',
  isLong: true,
  run: async (context) => {
    const { options, note } = context
    await withPeer(withNodeFlags(context, busyFlags(BUSY_MS), heapFlags), 1, async (peer) => {
      const churn = await Churn.start(peer.ports[0]!)
      // The load adds a warm-up of a quarter.
      const seconds = Math.max(4, Math.round((options.minutes * 60) / 1.25))
      const running = load(peer.servers, ...MIXED, '-r', String(RATE), '-s', String(seconds))
      const samples = await sample(peer, Math.max(500, options.minutes * 200), running)
      const [result] = await running
      await churn.stop()
      report(context, samples.points)
      if (samples.memory) reportMemory(context, samples.memory)
      if (samples.turns) reportTurns(context, samples.turns)
      note({ name: 'answered of a steady load', unit: 'op/s', better: 'higher' }, result!.perSecond)
      note({ name: 'p99 under a steady load', unit: 'ms', better: 'lower' }, result!.p99 / 1000)
      note({ name: 'longest wait under a steady load', unit: 'ms', better: 'lower' }, result!.max / 1000)
    })
  },
}
