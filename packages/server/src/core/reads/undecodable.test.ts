import {
  ErrorCode,
  OpCode,
  Writer,
  writeMultiHeader,
  writeSetWatches,
  writeSetWatches2,
} from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReadFixture } from './testing/read-fixture.ts'

const lists = { dataWatches: ['/a', '/gone'], existWatches: ['/a/b', '/new'], childWatches: ['/a'] }
const lasting = { persistentWatches: ['/a'], persistentRecursiveWatches: ['/'] }
const pathAnd = (rest: (w: Writer) => void) => (w: Writer) => {
  w.string('/a')
  rest(w)
}
const watch = pathAnd((w) => w.bool(true))
const nothing = (): void => {}

/** A complete body of every operation that has one. */
const bodies: readonly (readonly [keyof typeof OpCode, (w: Writer) => void])[] = [
  ['sync', pathAnd(nothing)],
  ['getData', watch],
  ['exists', watch],
  ['getChildren', watch],
  ['getChildren2', watch],
  ['getACL', pathAnd(nothing)],
  ['getAllChildrenNumber', pathAnd(nothing)],
  ['getEphemerals', pathAnd(nothing)],
  ['addWatch', pathAnd((w) => w.int(0))],
  ['checkWatches', pathAnd((w) => w.int(3))],
  ['removeWatches', pathAnd((w) => w.int(3))],
  ['setWatches', (w) => writeSetWatches(w, { relativeZxid: 0n, ...lists })],
  ['setWatches2', (w) => writeSetWatches2(w, { relativeZxid: 0n, ...lists, ...lasting })],
  [
    'multiRead',
    (w) => {
      for (const type of [OpCode.getData, OpCode.getChildren]) {
        writeMultiHeader(w, { type, done: false, err: -1 })
        watch(w)
      }
      writeMultiHeader(w, { type: -1, done: true, err: -1 })
    },
  ],
]
const bytesOf = (write: (w: Writer) => void): Uint8Array => {
  const w = new Writer()
  write(w)
  return w.take()
}
const FAILED = { err: ErrorCode.MARSHALLINGERROR, length: 0 }

describe('a body that cannot be decoded', () => {
  it.each(bodies)('of %s, truncated anywhere, fails without a body, a watch or an event', (name, write) => {
    const whole = bytesOf(write)
    for (let end = 0; end < whole.length; end++) {
      const fixture = new ReadFixture()
      expect(fixture.ask(OpCode[name], whole.subarray(0, end))).toMatchObject(FAILED)
      expect(fixture.watches.size).toBe(0)
      expect(fixture.client.watchedPaths.size).toBe(0)
      expect(fixture.client.events).toEqual([])
    }
  })

  it.each(bodies)('of %s is not one with surplus bytes at its end', (name, write) => {
    const whole = bytesOf(write)
    const longer = new Uint8Array(whole.length + 7).fill(0xee)
    longer.set(whole)
    const [plain, more] = [new ReadFixture(), new ReadFixture()]
    const expected = plain.ask(OpCode[name], whole)
    expect(more.ask(OpCode[name], longer)).toMatchObject({ err: expected.err, bytes: expected.bytes })
    expect(more.client.events).toEqual(plain.client.events)
  })

  it.each(['setWatches', 'setWatches2'] as const)('of %s that claims two billion paths fails', (name) => {
    const body = bytesOf((w) => {
      w.long(0n)
      w.int(2 ** 31 - 1)
      for (let i = 0; i < 100; i++) w.string('/a')
    })
    const fixture = new ReadFixture()
    expect(fixture.ask(OpCode[name], body)).toMatchObject(FAILED)
    expect([fixture.watches.size, fixture.client.events]).toEqual([0, []])
  })

  it('of random bytes gets a reply, which is empty on failure, and leaves the tree unchanged', () => {
    const ops = [...bodies.map(([name]) => OpCode[name]), OpCode.whoAmI, OpCode.ping]
    // Complete bodies with some bytes changed reach more code than random bytes.
    const damaged = fc
      .tuple(fc.constantFrom(...bodies), fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { maxLength: 4 }))
      .map(([[name, write], changes]) => {
        const bytes = bytesOf(write)
        for (const [at, value] of changes) bytes[at % bytes.length] = value
        return [OpCode[name], bytes] as const
      })
    const noise = fc.tuple(fc.constantFrom(...ops), fc.uint8Array({ maxLength: 60 }))
    const fixture = new ReadFixture()
    const digest = fixture.tree.digest
    fc.assert(
      fc.property(fc.oneof(damaged, noise), ([op, bytes]) => {
        const { err, length } = fixture.ask(op, bytes)
        expect(Number.isInteger(err)).toBe(true)
        if (err !== 0 && op !== OpCode.multiRead) expect(length).toBe(0)
        fixture.watches.removeAll(fixture.client)
        fixture.client.events.length = fixture.client.frames.length = 0
      }),
      { numRuns: 20_000 },
    )
    expect(fixture.tree.digest).toEqual(digest)
  })

  it('of an operation that is no read is not read', () => {
    const fixture = new ReadFixture()
    for (const op of [OpCode.create, OpCode.setData, OpCode.multi, OpCode.check, OpCode.auth, 0, -1, 55])
      expect(fixture.ask(op, bytesOf(watch))).toMatchObject({ err: ErrorCode.UNIMPLEMENTED, length: 0 })
  })
})
