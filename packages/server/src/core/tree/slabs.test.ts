import { Reader, Writer } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NodeStore, NONE } from './node-store.ts'
import { Slabs, slotSize } from './slabs.ts'
import { randomRuns } from '../../testing/random-runs.ts'

const RUNS = randomRuns(300)

const sizes = fc.oneof(
  fc.nat(130),
  fc.nat(3000),
  fc.constantFrom(0, 1, 16, 17, 128, 129, 16_384, 16_385, 70_000),
)
const filled = (size: number, mark: number): Uint8Array =>
  new Uint8Array(size).map((_, i) => (i * 7 + mark) & 255)

/** Compares as memory: an assertion about the elements of a thousand arrays takes seconds. */
const isSame = (one: Uint8Array | null, other: Uint8Array | null): boolean =>
  one === null || other === null ? one === other : Buffer.compare(one, other) === 0

/** Stores 20,000 values. Returns their addresses and the highest slab. */
function crowd(slabs: Slabs): { places: (readonly [slab: number, offset: number])[]; highest: number } {
  const places = Array.from({ length: 20_000 }, () => {
    slabs.put(filled(100, 1))
    return [slabs.slab, slabs.offset] as const
  })
  return { places, highest: Math.max(...places.map(([slab]) => slab)) }
}

function pathReader(path: string): Reader {
  const writer = new Writer()
  writer.string(path)
  writer.int(1)
  return new Reader(writer.take())
}

describe('slotSize', () => {
  it('is a multiple of 16, of a quarter of a power of two above 128', () => {
    const lengths = [1, 16, 17, 32, 112, 113, 128, 129, 160, 161, 192, 224, 225, 256, 257, 320, 16_384]
    const slots = [16, 16, 32, 32, 112, 128, 128, 160, 160, 192, 192, 224, 256, 256, 320, 320, 16_384]
    expect(lengths.map(slotSize)).toEqual(slots)
  })

  it('is at least the length, and wastes at most a quarter or 15 bytes', () => {
    const lengths = Array.from({ length: 20_000 }, (_, at) => at + 1)
    const isRight = (length: number): boolean => {
      const slot = slotSize(length)
      return slot >= length && slot - length <= Math.max(15, length / 4) && slotSize(slot) === slot
    }
    expect(lengths.filter((length) => !isRight(length))).toEqual([])
  })
})

describe('Slabs', () => {
  it('counts the bytes of removed values, which new values of their size use again', () => {
    const slabs = new Slabs()
    const { places } = crowd(slabs)
    const before = slabs.freeBytes
    const slot = slotSize(100)
    for (const [slab, offset] of places.filter((_, at) => at % 20 === 0)) slabs.free(slab, offset)
    expect(slabs.freeBytes).toBe(before + 1000 * slot)
    for (let i = 0; i < 1000; i++) slabs.put(filled(100, 2))
    expect(slabs.freeBytes).toBe(before)
    slabs.put(filled(20_000, 1))
    slabs.free(slabs.slab, slabs.offset)
    expect(slabs.freeBytes).toBe(before)
  })

  it('counts no bytes of slabs that are dropped', () => {
    const slabs = new Slabs()
    const { places } = crowd(slabs)
    for (const [slab, offset] of places) slabs.free(slab, offset)
    // The slab that is being filled stays.
    expect(slabs.freeBytes).toBeLessThanOrEqual(1 << 18)
    expect(slabs.freeBytes).toBeGreaterThan(0)
  })

  it(`returns the same values as a Map of copies, in ${RUNS} random histories`, () => {
    const step = fc.record({
      do: fc.constantFrom('put', 'put', 'free', 'overwrite'),
      size: sizes,
      pick: fc.nat(1000),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const slabs = new Slabs()
        const values = new Map<number, { slab: number; offset: number; copy: Uint8Array }>()
        const check = (): void => {
          for (const { slab, offset, copy } of values.values())
            expect(isSame(slabs.view(slab, offset, copy.length), copy)).toBe(true)
        }
        for (const [mark, one] of steps.entries()) {
          const held = [...values.keys()]
          const key = held[one.pick % Math.max(1, held.length)]
          const data = filled(one.size, mark)
          if (one.do === 'put') {
            slabs.put(data)
            values.set(mark, { slab: slabs.slab, offset: slabs.offset, copy: data.slice() })
            data.fill(0)
          } else if (key !== undefined && one.do === 'free') {
            const { slab, offset } = values.get(key)!
            slabs.free(slab, offset)
            values.delete(key)
          } else if (key !== undefined) {
            const value = values.get(key)!
            if (slabs.overwrite(value.slab, value.offset, data)) value.copy = data.slice()
          }
        }
        check()
      }),
      { numRuns: RUNS },
    )
  })

  const FIRST = 1 << 14
  const NEXT = 1 << 18
  const putAll = (slabs: Slabs, count: number, size: number): (readonly [slab: number, offset: number])[] =>
    Array.from({ length: count }, () => {
      slabs.put(new Uint8Array(size))
      return [slabs.slab, slabs.offset] as const
    })

  it('begins each size with 16 KiB, and goes on with 256 KiB at a time', () => {
    const slabs = new Slabs()
    expect(slabs.freeBytes).toBe(0)
    const first = putAll(slabs, 16, 1024)
    expect(first).toEqual(Array.from({ length: 16 }, (_, at) => [0, at * 1024]))
    expect(slabs.freeBytes).toBe(0)
    expect(putAll(slabs, 1, 1024)).toEqual([[1, 0]])
    expect(slabs.freeBytes).toBe(NEXT - 1024)
    expect(putAll(slabs, 255, 1024).at(-1)).toEqual([1, 255 * 1024])
    expect([putAll(slabs, 1, 1024), slabs.freeBytes]).toEqual([[[2, 0]], NEXT - 1024])
    // Of another size, of which three do not fill a slab.
    expect(putAll(slabs, 4, 5000).map(([slab]) => slab)).toEqual([3, 3, 3, 4])
    expect(slabs.freeBytes).toBe(NEXT - 1024 + FIRST - 3 * 5120 + NEXT - 5120)
  })

  it('gives longer values an array of their own, which takes nothing once it is freed', () => {
    const slabs = new Slabs()
    expect(putAll(slabs, 2, 16_384)).toEqual([
      [0, 0],
      [1, 0],
    ])
    expect(slabs.freeBytes).toBe(NEXT - FIRST)
    const [[slab, offset]] = putAll(slabs, 1, 16_385) as [readonly [number, number]]
    expect([slab, offset, slabs.freeBytes]).toEqual([2, 0, NEXT - FIRST])
    expect([slabs.ownArray(slab)!.length, slabs.ownArray(0), slabs.ownArray(-1)]).toEqual([
      16_385,
      undefined,
      undefined,
    ])
    slabs.free(slab, offset)
    expect([slabs.freeBytes, putAll(slabs, 1, 20_000)]).toEqual([NEXT - FIRST, [[2, 0]]])
    const other = new Slabs()
    expect(putAll(other, 1, 20_000)).toEqual([[0, 0]])
    expect(other.ownArray(0)).toHaveLength(20_000)
  })

  it('drops a slab without values unless it is being filled, and counts what is free', () => {
    const slabs = new Slabs()
    const [first, second] = [putAll(slabs, 16, 1024), putAll(slabs, 2, 1024)]
    for (const [slab, offset] of first.slice(1)) slabs.free(slab, offset)
    expect(slabs.freeBytes).toBe(NEXT - 2 * 1024 + 15 * 1024)
    slabs.free(...first[0]!)
    expect(slabs.freeBytes).toBe(NEXT - 2 * 1024)
    for (const place of second) slabs.free(...place)
    expect(slabs.freeBytes).toBe(NEXT)
    // The slots that were freed last come first; the number of the dropped slab is used again.
    expect(putAll(slabs, 3, 1024)).toEqual([
      [1, 1024],
      [1, 0],
      [1, 2048],
    ])
    expect(putAll(slabs, 1, 100)).toEqual([[0, 0]])
  })

  it('fills the free slots of other slabs, in the order in which the slabs got some, before it takes a new one', () => {
    const slabs = new Slabs()
    const places = putAll(slabs, 16 + 256 + 256, 1024)
    const [zero, one, two] = [places[3]!, places[20]!, places.at(-1)!]
    slabs.free(...one)
    slabs.free(...zero)
    slabs.free(...places[4]!)
    slabs.free(...two)
    expect(putAll(slabs, 1, 1024)).toEqual([two])
    expect(putAll(slabs, 3, 1024)).toEqual([one, places[4]!, zero])
    expect(putAll(slabs, 1, 1024)).toEqual([[3, 0]])
    // The last slab is being filled: those before it are open again as they get free slots.
    slabs.free(...two)
    slabs.free(3, 0)
    expect(putAll(slabs, 257, 1024).at(-1)).toEqual(two)
  })

  it('does not use a slab that it has dropped', () => {
    const slabs = new Slabs()
    const places = putAll(slabs, 17, 1024)
    slabs.free(...places[0]!)
    for (const place of places.slice(1, 16)) slabs.free(...place)
    expect(putAll(slabs, 256, 1024).map(([slab]) => slab)).toEqual([
      ...Array.from({ length: 255 }, () => 1),
      0,
    ])
    expect(slabs.freeBytes).toBe(NEXT - 1024)
  })

  it('overwrites a value with one of the same size class alone', () => {
    const slabs = new Slabs()
    const [[slab, offset]] = putAll(slabs, 1, 100) as [readonly [number, number]]
    const [[own]] = putAll(slabs, 1, 20_000) as [readonly [number, number]]
    const overwrites = (size: number, at = slab): boolean => slabs.overwrite(at, offset, filled(size, 9))
    expect([0, 96, 97, 112, 113].map((size) => overwrites(size))).toEqual([false, false, true, true, false])
    expect(isSame(slabs.view(slab, offset, 112), filled(112, 9))).toBe(true)
    expect([overwrites(20_000, own), overwrites(0, own), overwrites(100, -1)]).toEqual([false, false, false])
    expect([...slabs.view(own, 0, 3)]).toEqual([0, 0, 0])
    const [[small]] = putAll(slabs, 1, 16) as [readonly [number, number]]
    expect(overwrites(0, small)).toBe(false)
  })

  it('has no bytes for empty values', () => {
    const slabs = new Slabs()
    expect(putAll(slabs, 1, 10)).toEqual([[0, 0]])
    expect(putAll(slabs, 1, 10)).toEqual([[0, 16]])
    expect(putAll(slabs, 1, 0)).toEqual([[-1, 0]])
    slabs.putRange(new DataView(new ArrayBuffer(8)), 3, 3)
    expect([slabs.slab, slabs.offset, slabs.view(-1, 0, 0).length, slabs.viewOf(-1).byteLength]).toEqual([
      -1, 0, 0, 0,
    ])
    slabs.free(-1, 0)
    expect(slabs.freeBytes).toBe(FIRST - 32)
  })

  it('stores the bytes between two offsets', () => {
    const slabs = new Slabs()
    const from = filled(300, 3)
    slabs.putRange(new DataView(from.buffer), 40, 250)
    expect(isSame(slabs.view(slabs.slab, slabs.offset, 210), from.subarray(40, 250))).toBe(true)
    expect(slabs.viewOf(slabs.slab).getUint8(slabs.offset + 209)).toBe(from[249])
  })

  it('reuses freed slots and drops empty slabs', () => {
    const slabs = new Slabs()
    const { places, highest } = crowd(slabs)
    for (const [slab, offset] of places) slabs.free(slab, offset)
    expect(crowd(slabs).highest).toBeLessThanOrEqual(highest)
  })

  it('fills freed slots before it allocates a slab', () => {
    const slabs = new Slabs()
    const { places, highest } = crowd(slabs)
    for (const [at, [slab, offset]] of places.entries()) if (at % 3 > 0) slabs.free(slab, offset)
    const more = places.flatMap((_, at) => {
      if (at % 3 === 0) return []
      slabs.put(filled(100, 2))
      return slabs.slab
    })
    expect(Math.max(...more)).toBeLessThanOrEqual(highest)
    const kept = places.filter((_, at) => at % 3 === 0)
    const copy = filled(100, 1)
    expect(kept.filter(([slab, offset]) => !isSame(slabs.view(slab, offset, 100), copy))).toEqual([])
  })
})

describe('NodeStore', () => {
  interface Plain {
    data: Uint8Array | null
    readonly children: string[]
  }

  it(`has the same nodes, data and order of children as a Map, in ${RUNS} random histories`, () => {
    const path = fc.constantFrom('/a', '/b', '/c', '/a/x', '/a/y', '/a/z', '/a/x/p', '/a/x/q', '/b/x')
    const step = fc.record({
      do: fc.constantFrom('add', 'add', 'remove', 'set'),
      path,
      size: fc.option(sizes),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const store = new NodeStore()
        const plain = new Map<string, Plain>([['/', { data: null, children: [] }]])
        store.add('/', NONE)
        for (const [mark, { do: what, path: at, size }] of steps.entries()) {
          const parent = at.slice(0, at.lastIndexOf('/')) || '/'
          const node = store.find(at)
          expect(node === NONE).toBe(!plain.has(at))
          // From a reader, which advances only when a node has the path.
          const reader = pathReader(at)
          expect(store.findFromReader(reader)).toBe(node)
          expect(reader.offset).toBe(node === NONE ? 0 : 4 + at.length)
          const data = size === null ? null : filled(size, mark)
          if (what === 'add' && node === NONE && plain.has(parent)) {
            store.setData(store.add(at, store.find(parent)), data)
            plain.set(at, { data, children: [] })
            plain.get(parent)!.children.push(at)
          } else if (what === 'set' && node !== NONE) {
            store.setData(node, data)
            plain.get(at)!.data = data
          } else if (what === 'remove' && node !== NONE && plain.get(at)!.children.length === 0) {
            store.remove(node)
            plain.delete(at)
            const { children } = plain.get(parent)!
            children.splice(children.indexOf(at), 1)
          }
        }
        expect(store.count).toBe(plain.size)
        expect(store.dataBytes).toBe(
          [...plain.values()].reduce((sum, { data }) => sum + (data?.length ?? 0), 0),
        )
        expect(store.pathChars).toBe([...plain.keys()].join('').length)
        for (const [at, { data, children }] of plain) {
          const node = store.find(at)
          expect(store.pathOf(node)).toBe(at)
          expect(isSame(store.data(node), data)).toBe(true)
          const found: string[] = []
          for (let child = store.firstChildOf(node); child !== NONE; child = store.nextOf(child))
            found.push(store.pathOf(child))
          expect(found).toEqual(children)
        }
        const walked: string[] = []
        for (let node = store.find('/'); node !== NONE; node = store.successor(node, NONE))
          walked.push(store.pathOf(node))
        expect(walked.toSorted()).toEqual([...plain.keys()].toSorted())
      }),
      { numRuns: RUNS },
    )
  })
})
