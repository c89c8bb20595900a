import { Churn } from '../churn.ts'
import { load } from '../load.ts'
import { fourLetterWord, type Peer } from '../peers.ts'
import { growth, mntrFigures, secondHalf, type Point } from '../series.ts'
import { on, type Case, type Setting } from './case.ts'

/** A moderate load, which a server on a machine like ours bears with ease. */
const RATE = 4000
const MIXED = ['-m', 'mixed', '-c', '20', '-d', '8', '-k', '2000', '--reads', '80', '--size', '100']
/** Longest pause that clients of a coordination service are not to notice. */
const PAUSE_MS = 20
/** Growth of the second half, as a share, up to which memory counts as flat. */
const FLAT = 0.05

/** What is watched, and whether `mntr` tells it; in the unit that is drawn. */
const watched = [
  { name: 'heap in use', unit: 'MB', key: 'heap_used_bytes', per: 1e6 },
  { name: 'memory outside of the heap', unit: 'MB', key: 'external_memory_bytes', per: 1e6 },
  { name: 'event loop held', unit: 'ms', key: 'max_event_loop_hold_ms', per: 1 },
  { name: 'longest collection', unit: 'ms', key: 'max_gc_pause_ms', per: 1 },
  { name: 'znodes', unit: '', key: 'znode_count', per: 1 },
  { name: 'sessions', unit: '', key: 'global_sessions', per: 1 },
] as const
const RESIDENT = 'resident memory'

/** Looks at a server until `over`, and has it begin its maxima anew each time. */
async function watch(peer: Peer, everyMs: number, over: Promise<unknown>): Promise<Map<string, Point[]>> {
  const seen = new Map<string, Point[]>()
  const add = (name: string, at: number, value: number): void => {
    const points = seen.get(name)
    if (points === undefined) seen.set(name, [{ at, value }])
    else points.push({ at, value })
  }
  let isOver = false
  const ended = over.then(
    () => (isOver = true),
    () => (isOver = true),
  )
  const began = performance.now()
  // What happened before is no part of it.
  await fourLetterWord(peer.ports[0]!, 'srst')
  for (;;) {
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, everyMs))])
    if (isOver) return seen
    const figures = mntrFigures(await fourLetterWord(peer.ports[0]!, 'mntr'))
    await fourLetterWord(peer.ports[0]!, 'srst')
    const at = (performance.now() - began) / 1000
    add(RESIDENT, at, peer.resident() / 1e6)
    for (const { name, key, per } of watched) {
      const value = figures.get(key)
      if (value !== undefined) add(name, at, value / per)
    }
  }
}

function report({ note, record }: Setting, seen: ReadonlyMap<string, readonly Point[]>): void {
  record(RESIDENT, 'MB', seen.get(RESIDENT) ?? [])
  for (const { name, unit } of watched) {
    const points = seen.get(name)
    if (points !== undefined) record(name, unit, points)
  }
  for (const name of [RESIDENT, 'heap in use']) {
    const later = secondHalf(seen.get(name) ?? [])
    if (later.length < 3) continue
    const limit = FLAT * 100
    note(
      { name: `${name}: growth in the second half`, unit: '%', better: 'lower', limit },
      growth(later) * 100,
    )
    note({ name: `${name}: at most`, unit: 'MB', better: 'lower' }, most(later))
  }
  for (const name of ['event loop held', 'longest collection']) {
    const points = seen.get(name)
    if (points === undefined) continue
    const figure = {
      name: `${name}, of the whole run`,
      unit: 'ms',
      better: 'lower',
      limit: PAUSE_MS,
    } as const
    note(figure, most(points))
  }
}

const most = (points: readonly Point[]): number => Math.max(...points.map(({ value }) => value))

/** Whether memory stays what it is, and how long the longest pause is, over many minutes. */
export const enduranceCase: Case = {
  name: 'endurance',
  about:
    'a moderate mixed load with nodes, watches and sessions that come and go, over many minutes (--minutes)',
  isLong: true,
  run: async (setting) => {
    const { choices, note } = setting
    await on(setting, 1, async (peer) => {
      const churn = await Churn.start(peer.ports[0]!)
      // The load adds a warm-up of a quarter.
      const seconds = Math.max(4, Math.round((choices.minutes * 60) / 1.25))
      const running = load(peer.servers, ...MIXED, '-r', String(RATE), '-s', String(seconds))
      const seen = await watch(peer, Math.max(500, choices.minutes * 200), running)
      const [told] = await running
      await churn.stop()
      report(setting, seen)
      note({ name: 'answered of a steady load', unit: 'op/s', better: 'higher' }, told!.perSecond)
      note({ name: 'p99 under a steady load', unit: 'ms', better: 'lower' }, told!.p99 / 1000)
      note({ name: 'longest wait under a steady load', unit: 'ms', better: 'lower' }, told!.max / 1000)
    })
  },
}
