import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  WatchFixture,
  CHANGED,
  CHILDREN,
  CREATED,
  DELETED,
  RecordingWatcher,
  parentOf,
} from './testing/recording-watcher.ts'
import { randomRuns } from '../../testing/random-runs.ts'

const RUNS = randomRuns(5000)

type Kind = 'data' | 'child' | 'persistent' | 'recursive'
interface Held {
  readonly kind: Kind
  readonly path: string
  readonly watcher: number
}

const PATHS = ['/', '/a', '/a/x', '/a/x/p', '/ab', '/b']
/** The watches that each type of checkWatches and removeWatches, 1 to 5, selects. */
const KINDS_OF_TYPE: readonly (readonly Kind[])[] = [
  ['child'],
  ['data'],
  ['child', 'data', 'persistent', 'recursive'],
  ['persistent'],
  ['recursive'],
]

/** Pairs of connection and path, counted per table. */
function entriesOf(held: readonly Held[]): number {
  const data = held.filter(({ kind }) => kind !== 'child').map(({ path, watcher }) => `${watcher} ${path}`)
  const child = held
    .filter(({ kind }) => kind === 'child' || kind === 'persistent')
    .map(({ path, watcher }) => `${watcher} ${path}`)
  return new Set(data).size + new Set(child).size
}

/** The watches of a connection: its paths, and what each type finds on each path. */
function stateOf({ watches }: WatchFixture, watcher: RecordingWatcher): string {
  const found = PATHS.map((path) =>
    KINDS_OF_TYPE.map((_, i) => (watches.has(watcher, path, i + 1) ? 1 : 0)).join(''),
  )
  return `${[...watcher.watchedPaths].sort().join()} ${found.join()}`
}

/** The same from the plain list. */
function stateIn(held: readonly Held[], watcher: number): string {
  const own = held.filter((one) => one.watcher === watcher)
  const found = PATHS.map((path) =>
    KINDS_OF_TYPE.map((kinds) =>
      own.some((one) => one.path === path && kinds.includes(one.kind)) ? 1 : 0,
    ).join(''),
  )
  return `${[...new Set(own.map(({ path }) => path))].sort().join()} ${found.join()}`
}

const countsOf = ({ watches: { data, child } }: WatchFixture): Record<Kind, number> => {
  expect(child.counts).toMatchObject({ persistent: data.counts.persistent, recursive: 0 })
  const { oneShot, persistent, recursive } = data.counts
  return { data: oneShot, child: child.counts.oneShot, persistent, recursive }
}

const countsIn = (held: readonly Held[]): Record<Kind, number> => {
  const count = (kind: Kind): number => held.filter((one) => one.kind === kind).length
  return {
    data: count('data'),
    child: count('child'),
    persistent: count('persistent'),
    recursive: count('recursive'),
  }
}

describe('WatchManager', () => {
  const path = fc.constantFrom(...PATHS)
  const watcher = fc.nat(2)
  const step = fc.oneof(
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('watch' as const),
        kind: fc.constantFrom<Kind>('data', 'child', 'persistent', 'recursive'),
        path,
        watcher,
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom('created' as const, 'deleted' as const, 'changed' as const),
        path: path.filter((one) => one !== '/'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant('remove' as const),
        type: fc.integer({ min: 1, max: 5 }),
        path,
        watcher,
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('gone' as const), watcher }) },
  )

  it(`notifies the same watchers as a plain list of watches, in ${RUNS} random histories`, () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const fixture = new WatchFixture()
        const watchers = [new RecordingWatcher(), new RecordingWatcher(), new RecordingWatcher()]
        let held: Held[] = []
        const take = (matches: (one: Held) => boolean): number[] => {
          const hit = held.filter(matches)
          held = held.filter(
            (one) => !hit.includes(one) || one.kind === 'persistent' || one.kind === 'recursive',
          )
          return [...new Set(hit.map((one) => one.watcher))]
        }
        const below = (top: string, at: string): boolean =>
          top === at || at.startsWith(top === '/' ? '/' : `${top}/`)
        for (const one of steps) {
          const expected: string[][] = [[], [], []]
          if (one.do === 'watch') {
            const same = held.some(
              (other) => other.kind === one.kind && other.path === one.path && other.watcher === one.watcher,
            )
            if (!same) held.push({ kind: one.kind, path: one.path, watcher: one.watcher })
            const { watches } = fixture
            if (one.kind === 'data') watches.watchData(watchers[one.watcher]!, one.path)
            else if (one.kind === 'child') watches.watchChildren(watchers[one.watcher]!, one.path)
            else if (one.kind === 'persistent') watches.watchPersistently(watchers[one.watcher]!, one.path)
            else watches.watchRecursively(watchers[one.watcher]!, one.path)
          } else if (one.do === 'gone') {
            held = held.filter((other) => other.watcher !== one.watcher)
            fixture.watches.removeAll(watchers[one.watcher]!)
          } else if (one.do === 'remove') {
            const kinds = KINDS_OF_TYPE[one.type - 1]!
            const before = held.length
            held = held.filter(
              (other) =>
                !(other.watcher === one.watcher && other.path === one.path && kinds.includes(other.kind)),
            )
            expect(fixture.watches.remove(watchers[one.watcher]!, one.path, one.type)).toBe(
              held.length < before,
            )
          } else {
            const event = one.do === 'created' ? CREATED : one.do === 'deleted' ? DELETED : CHANGED
            const own = take(
              (other) =>
                (other.path === one.path &&
                  (other.kind === 'data' ||
                    other.kind === 'persistent' ||
                    (other.kind === 'child' && one.do === 'deleted'))) ||
                (other.kind === 'recursive' && below(other.path, one.path)),
            )
            for (const index of own) expected[index]!.push(`${event} ${one.path}`)
            if (one.do !== 'changed') {
              const parent = parentOf(one.path)
              const more = take(
                (other) => other.path === parent && (other.kind === 'child' || other.kind === 'persistent'),
              )
              for (const index of more) expected[index]!.push(`${CHILDREN} ${parent}`)
            }
            fixture[one.do](one.path)
          }
          expect(watchers.map((each) => each.takeEvents())).toEqual(expected)
          expect(watchers.map((each) => stateOf(fixture, each))).toEqual(
            watchers.map((_, i) => stateIn(held, i)),
          )
          expect(fixture.watches.size).toBe(entriesOf(held))
          expect(countsOf(fixture)).toEqual(countsIn(held))
        }
      }),
      { numRuns: RUNS },
    )
  })
})
