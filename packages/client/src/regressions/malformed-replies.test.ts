// oxlint-disable unbound-method -- what is measured is replaced and put back
import { expect, it } from 'vitest'
import { WatchRegistry, type WatchListener } from '../watches/watch-registry.ts'

const listener = (notify: () => void = () => {}): WatchListener => ({
  owner: {},
  close: () => Promise.resolve(),
  notify,
  resync() {},
  end() {},
})

it.each([
  ['no slash', 'abc'],
  ['nothing', ''],
  ['slashes alone', '/'.repeat(2_000_000)],
  ['a million parts', '/a'.repeat(1_000_000)],
])('an event whose path is %s does not hang the process', (_what, path) => {
  const registry = new WatchRegistry()
  registry.add('recursive', '/x', listener())
  // Counts the steps of the walk to the root, so that an endless loop fails the test instead of hanging the runner.
  const slice = String.prototype.slice
  let steps = 0
  // eslint-disable-next-line no-extend-native
  String.prototype.slice = function (this: string, ...at: [number?, number?]): string {
    if (++steps > 10_000) throw new Error('the walk to the root never ends')
    return slice.apply(this, at)
  }
  try {
    registry.dispatch({ type: 'nodeCreated', path, zxid: undefined, order: 1 })
  } finally {
    String.prototype.slice = slice
  }
  expect(steps).toBeLessThan(10)
})

it('an event reaches the recursive watches of its path and of all its ancestors, and no others', () => {
  const watched = ['/', '/a', '/a/b', '/a/b/c', '/ab', '/a/b/c/d/e', '/abc/d']
  const events = ['/', '/a', '/a/b', '/ab', '/ab/x', '/a/b/c/d', '/a/b/c/d/e/f/g', '/abcdefghijkl', '/x/y']
  for (let count = 1; count <= watched.length; count++) {
    const registry = new WatchRegistry()
    const notified = new Set<string>()
    for (const path of watched.slice(0, count))
      registry.add(
        'recursive',
        path,
        listener(() => notified.add(path)),
      )
    for (const path of events) {
      notified.clear()
      registry.dispatch({ type: 'nodeCreated', path, zxid: undefined, order: 1 })
      const expected = watched
        .slice(0, count)
        .filter((each) => each === '/' || path === each || path.startsWith(`${each}/`))
      expect([...notified].toSorted()).toEqual(expected.toSorted())
    }
  }
})
