import { SeededRandom } from '@zabra/runtime'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NONE, PathIndex } from './path-index.ts'

describe('PathIndex', () => {
  it('holds the same entries as a Map, in 500 random histories of adding and removing', () => {
    const step = fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 60 }))
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), fc.integer(), (steps, key) => {
        const index = new PathIndex(key)
        const plain = new Map<string, number>()
        for (const [adds, number] of steps) {
          const path = `/node-${number}`
          if (adds) {
            expect(index.add(path, plain.has(path) ? 1000 : number)).toBe(!plain.has(path))
            plain.set(path, number)
          } else if (plain.delete(path)) index.remove(number)
        }
        for (let number = 0; number <= 60; number++) {
          const path = `/node-${number}`
          expect(index.find(path)).toBe(plain.get(path) ?? NONE)
          expect(index.pathAt(number)).toBe(plain.has(path) ? path : undefined)
        }
        expect(index.pathAt(1000)).toBeUndefined()
      }),
      { numRuns: 500 },
    )
  })

  it('holds the same entries as a Map where many hashes are equal or neighbours, at the end of a table too', () => {
    // Callers pass hashes: those of a shard whose places collide, in tables of any size, and of another one.
    const hashes = [0, 0, 1, 2, 3, 6, 7, 7, 14, 15, 31, 63, 127, 0x100_0000, 0x100_0007, -1, -1, -8]
    for (let seed = 1; seed <= 5; seed++) {
      const random = new SeededRandom(seed)
      const index = new PathIndex(seed)
      const plain = new Map<string, number>()
      const hashOf = (path: string): number => hashes[Number(path.slice(1)) % hashes.length]!
      const free = Array.from({ length: 120 }, (_, node) => (node % 3 === 0 ? node : node + 9000))
      for (let step = 0; step < 600; step++) {
        const path = `/${random.below(100)}`
        const adds = random.below(100) < (step < 300 ? 70 : 20)
        const node = plain.get(path)
        if (adds) {
          const given = free.at(-1)!
          expect(index.add(path, given, hashOf(path))).toBe(node === undefined)
          if (node === undefined) plain.set(path, free.pop()!)
        } else if (node !== undefined) {
          index.remove(node, hashOf(path))
          plain.delete(path)
          free.unshift(node)
        }
        if (step % 20 > 0) continue
        const wrong = Array.from({ length: 100 }, (_, number) => `/${number}`).filter(
          (each) => index.find(each, hashOf(each)) !== (plain.get(each) ?? NONE),
        )
        expect(wrong).toEqual([])
        expect(free.filter((unused) => index.pathAt(unused) !== undefined)).toEqual([])
        expect([...plain].filter(([each, used]) => index.pathAt(used) !== each)).toEqual([])
      }
    }
  })

  it.each([
    ['short', '/n-', ['48988', '88173']],
    ['long', `/${'x'.repeat(1015)}`, ['10016991', '10056180']],
  ])('distinguishes two %s paths with equal hashes', (_, begin, ends) => {
    const index = new PathIndex(7)
    const paths = ends.map((end) => begin + end)
    const [hash, other] = paths.map((path) => index.hash(path))
    expect(hash).toBe(other)
    const found = (path: string): number[] => {
      const bytes = new TextEncoder().encode(path)
      return [index.find(path), index.findAscii(new DataView(bytes.buffer), 0, bytes.length)]
    }
    index.add(paths[0]!, 0)
    expect(paths.map(found)).toEqual([
      [0, 0],
      [NONE, NONE],
    ])
    index.add(paths[1]!, 1)
    expect(paths.map(found)).toEqual([
      [0, 0],
      [1, 1],
    ])
    expect(index.lastHash).toBe(hash)
  })

  it('finds what it has after a table has become empty many times', () => {
    const index = new PathIndex(7)
    for (let round = 0; round < 8; round++) {
      expect(index.add('/a', round, 5)).toBe(true)
      expect([index.find('/a', 5), index.find('/b', 5)]).toEqual([round, NONE])
      index.remove(round, 5)
      expect(index.find('/a', 5)).toBe(NONE)
    }
  })

  it('distinguishes paths with equal hashes among 300,000 paths, while it grows and shrinks', () => {
    const index = new PathIndex(7)
    const count = 300_000
    // Consecutive names would have no hash in common.
    const path = (node: number): string => `/a/${10 ** 9 + node * 7919}`
    for (let node = 0; node < count; node++) if (!index.add(path(node), node)) expect.fail(path(node))
    const wrong: number[] = []
    const encoder = new TextEncoder()
    const bytes = new Uint8Array(40)
    const view = new DataView(bytes.buffer)
    const look = (from: number, step: number, wanted: (node: number) => number): void => {
      for (let node = from; node < count; node += step) {
        if (index.find(path(node)) !== wanted(node)) wrong.push(node)
        const { read, written } = encoder.encodeInto(path(node), bytes)
        if (read !== written || index.findAscii(view, 0, written) !== wanted(node)) wrong.push(node)
      }
    }
    look(0, 1, (node) => node)
    for (let node = 0; node < count; node += 2) index.remove(node)
    look(0, 1, (node) => (node % 2 === 0 ? NONE : node))
    for (let node = 1; node < count; node += 2) if (node % 100 !== 1) index.remove(node)
    look(0, 1, (node) => (node % 100 === 1 ? node : NONE))
    // Other nodes get new paths.
    for (let node = 0; node < count; node += 2) index.add(path(node + 1_000_000), node)
    look(1, 100, (node) => node)
    expect(wrong).toEqual([])
    expect(index.find(path(1_000_004))).toBe(4)
  })

  it('finds the empty path, the root and names in any script', () => {
    const index = new PathIndex(0)
    const paths = ['', '/', '/ü', '/\u{1f600}', `/${'x'.repeat(5000)}`]
    for (const [node, path] of paths.entries()) index.add(path, node)
    expect(paths.map((path) => index.find(path))).toEqual([0, 1, 2, 3, 4])
    expect(index.find('/u')).toBe(NONE)
  })

  it.each([1023, 1024, 5001])('finds a path of %i characters by its text and by its bytes', (length) => {
    const index = new PathIndex(5)
    const path = (last: string): string => `/${'x'.repeat(length - 2)}${last}`
    for (const [node, last] of ['a', 'b', 'ü'].entries()) index.add(path(last), node)
    const found = ['a', 'b', 'ü', 'c'].map((last) => {
      const bytes = new TextEncoder().encode(`..${path(last)}`)
      return [index.find(path(last)), index.findAscii(new DataView(bytes.buffer), 2, bytes.length)]
    })
    expect(found).toEqual([
      [0, 0],
      [1, 1],
      [2, NONE],
      [NONE, NONE],
    ])
  })

  it('hashes nearly all paths that differ in one or two bits differently, under each of 50 keys', () => {
    // A client that does not know the key tries such differences: multiplication moves none from high bits to low ones.
    const flips = [0]
    for (let bit = 0; bit < 96; bit++) if (bit % 8 !== 7) flips.push(bit)
    const paths = new Set<string>()
    for (const first of flips)
      for (const second of flips) {
        const text = Array.from('/AAAAAAAAAAA', (character) => character.charCodeAt(0))
        text[first >> 3]! ^= 1 << (first & 7)
        text[second >> 3]! ^= 1 << (second & 7)
        paths.add(String.fromCharCode(...text))
      }
    for (let key = 0; key < 50; key++) {
      const index = new PathIndex(Math.imul(key, 0x9e37_79b1))
      const hashes = new Set(Array.from(paths, (path) => index.hash(path)))
      expect(hashes.size).toBeGreaterThan(paths.size - 20)
    }
  })

  it('findAscii finds the same node as find for ASCII, and NONE for other text', () => {
    const ascii = fc.stringMatching(/^\/[a-c]{0,3}$/)
    const any = fc.string({
      unit: fc.constantFrom('a', '/', '\u00c3', '\u00a9', '\u00e9', '\u{1f600}'),
      maxLength: 3,
    })
    const encoder = new TextEncoder()
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.oneof(ascii, any), { maxLength: 20 }),
        fc.array(fc.oneof(ascii, any)),
        fc.integer(),
        (paths, wanted, key) => {
          const index = new PathIndex(key)
          for (const [node, path] of paths.entries()) index.add(path, node)
          for (const path of [...paths, ...wanted]) {
            const bytes = encoder.encode(`xx${path}y`)
            const isAscii = bytes.length === path.length + 3
            expect(index.findAscii(new DataView(bytes.buffer), 2, bytes.length - 1)).toBe(
              isAscii ? index.find(path) : NONE,
            )
          }
        },
      ),
      { seed: 21, numRuns: 300 },
    )
  })
})
