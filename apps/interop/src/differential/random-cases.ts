import { createBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { Prng } from '../harness/prng.ts'
import { request, type Request, type Step, type AddCase } from './case.ts'
import * as r from './requests.ts'

/** Random sequences of requests by three clients with watches on a few nodes, for combinations that the tables lack. */
export function randomCases(add: AddCase): void {
  for (let seed = 1; seed <= 30; seed++) {
    add(`random walk ${seed}`, (root) => {
      const prng = new Prng(seed)
      return Array.from({ length: 30 }, () => step(prng, root))
    })
  }
}

function step(prng: Prng, root: string): Step {
  const on = prng.pick(['a', 'b', 'c'])
  const path = (): string => root + prng.pick(['', '/n', '/m', '/n/x', '/n/y', '/m/x', '/n/x/deep'])
  const version = (): number => prng.pick([-1, -1, -1, 0, 1, 2])
  const flags = (): number => prng.pick([0, 0, 0, 1, 2, 3])
  const makers: readonly (() => Step)[] = [
    () => r.create(path(), 'data', flags(), on),
    () => r.create(path(), 'data', 0, on),
    () => r.create2(path(), null, flags(), on),
    () => request(op.createContainer, createBody(path(), '', 4), on),
    () => request(op.createTTL, r.ttlBody(path(), prng.pick([5, 6]), 60_000n), on),
    () => r.del(path(), version(), on),
    () => r.set(path(), prng.pick(['', 'x', 'longer']), version(), on),
    () => r.setAcl(path(), [r.acl(prng.pick([31, 31, 31, 30, 29, 15]))], version(), on),
    () => r.exists(path(), true, on),
    () => r.get(path(), true, on),
    () => r.list2(path(), true, on),
    () => r.getAcl(path(), on),
    () => r.count(path(), on),
    () => r.addWatch(path(), prng.int(2), on),
    () => r.removeWatch(path(), 1 + prng.int(5), on),
    () => r.checkWatch(path(), 1 + prng.int(5), on),
    () => r.ephemerals(root, on),
    () => r.multiRead([r.part.get(path()), r.part.list(path())], on),
    () =>
      r.multi(
        Array.from({ length: 1 + prng.int(4) }, () =>
          prng.pick([
            () => r.part.create(path(), flags()),
            () => r.part.set(path(), version()),
            () => r.part.check(path(), version()),
            () => r.part.delete(path(), version()),
          ])(),
        ),
        on,
      ),
    () => ({
      do: 'pipeline',
      on,
      requests: Array.from({ length: 4 }, (_, index): Request => {
        const made = prng.pick([
          () => r.create(path(), 'p', 0, on),
          () => r.set(path(), 'p', -1, on),
          () => r.get(path(), true, on),
          () => r.del(path(), -1, on),
        ])()
        if (made.do !== 'request') throw new Error('Only requests go into a pipeline')
        return { type: made.type, body: made.body, xid: 10 + index }
      }),
    }),
    () => ({
      do: 'setWatches',
      on,
      plus: prng.int(20),
      lists: [[path()], [path()], [path()], [path()], [path()]],
    }),
  ]
  return prng.pick(makers)()
}
