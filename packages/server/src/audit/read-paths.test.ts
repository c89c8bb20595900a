import { describe, expect, it } from 'vitest'
import { ReadPaths } from './read-paths.ts'

describe('the paths whose reads are recorded', () => {
  it.each(['reads:/a/b', 'reads:/a/b/', 'reads:/a/b/*', 'reads:/a/b/**'])(
    'of %s are the node and what is below',
    (event) => {
      const paths = new ReadPaths(['writes', event])
      expect(['/', '/a', '/a/b', '/a/b/c', '/a/bc'].filter((path) => paths.covers(path))).toEqual([
        '/a/b',
        '/a/b/c',
      ])
      expect(['/', '/a', '/a/b', '/a/b/c', '/b'].filter((path) => paths.isAbove(path))).toEqual(['/', '/a'])
    },
  )

  it('are all of them for the root, and none without such an event', () => {
    expect(['/', '/a'].every((path) => new ReadPaths(['reads:/']).covers(path))).toBe(true)
    expect(new ReadPaths(['writes', 'auth'])).toMatchObject({ isEmpty: true })
  })
})
