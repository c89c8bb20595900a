// oxlint-disable unbound-method -- what is measured is replaced and put back
import { expect, it } from 'vitest'
import { WatchRegistry } from '../watches/watch-registry.ts'

it.each(['abc', ''])('an event with the invalid path %j does not hang the process', (path) => {
  const registry = new WatchRegistry()
  registry.add('recursive', '/x', {
    owner: {},
    close: () => Promise.resolve(),
    notify() {},
    resync() {},
    end() {},
  })
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
