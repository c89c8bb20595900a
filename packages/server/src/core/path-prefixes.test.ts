import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PathPrefixes } from './path-prefixes.ts'

const ancestorsIn = (prefixes: PathPrefixes, path: string): string[] => {
  const found: string[] = []
  prefixes.forEachCandidate(path, (candidate) => {
    if (path.startsWith(candidate)) found.push(candidate)
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
        const prefixes = new PathPrefixes(key)
        const model = new Set<string>()
        for (const one of added) {
          prefixes.add(one)
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
        expect([...prefixes].sort()).toEqual([...model].sort())
        expect([prefixes.size, prefixes.has(sought)]).toEqual([model.size, model.has(sought)])
      }),
    )
  })
})
