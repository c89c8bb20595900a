import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { hashText, PathPrefixes } from './path-prefixes.ts'

const ancestorsIn = (prefixes: PathPrefixes<number>, path: string): string[] => {
  const found: string[] = []
  prefixes.forEachCandidate(path, (candidate, length) => {
    if (path.startsWith(candidate) && length === candidate.length) found.push(candidate)
  })
  return found
}

describe('PathPrefixes', () => {
  const path = fc
    .array(fc.constantFrom('a', 'b', 'ab'), { maxLength: 4 })
    .map((names) => `/${names.join('/')}`)

  it('finds the ancestors of a path that it holds, the highest first, whatever the key', () => {
    fc.assert(
      fc.property(fc.array(path), fc.array(path), path, fc.integer(), (added, removed, sought, key) => {
        const prefixes = new PathPrefixes<number>(key)
        const model = new Set<string>()
        for (const one of added) {
          prefixes.set(one, one.length)
          model.add(one)
        }
        for (const one of removed) {
          prefixes.delete(one)
          model.delete(one)
        }
        const ancestors = [...model].filter(
          (one) => one !== sought && sought.startsWith(one === '/' ? one : `${one}/`),
        )
        expect(ancestorsIn(prefixes, sought)).toEqual(ancestors.sort((a, b) => a.length - b.length))
        expect([...prefixes.keys()].sort()).toEqual([...model].sort())
        expect([prefixes.size, prefixes.get(sought) !== undefined]).toEqual([model.size, model.has(sought)])
      }),
    )
  })

  it('finds the ancestors of a path among 10,000 paths, while most of them are deleted', () => {
    const prefixes = new PathPrefixes<number>(3)
    const count = 10_000
    const other = (i: number): string => `/${'/n'.repeat(i % 7)}/${i}`
    for (let i = 0; i < count; i++) prefixes.set(other(i), other(i).length)
    const expectFound = (found: (i: number) => boolean): void => {
      const wrong = Array.from({ length: count }, (_, i) => i).filter(
        (i) => ancestorsIn(prefixes, `${other(i)}/x`).includes(other(i)) !== found(i),
      )
      expect(wrong).toEqual([])
    }
    expectFound(() => true)
    for (let i = 0; i < count; i++) if (i % 3 > 0) prefixes.delete(other(i))
    expectFound((i) => i % 3 === 0)
    expect(prefixes.size).toBe(Math.ceil(count / 3))
    expect([...prefixes.keys()].toSorted()).toEqual(
      Array.from({ length: Math.ceil(count / 3) }, (_, i) => other(i * 3)).toSorted(),
    )
  })
})

it('texts that differ in leading NULs have different hashes, whatever the key', () => {
  for (const key of [3, 0x1234_5671, 0x9e37_79b1]) {
    const hashes = Array.from({ length: 1000 }, (_, count) => hashText(`${'\0'.repeat(count)}/a`, key))
    expect(new Set(hashes).size).toBeGreaterThan(900)
  }
})
