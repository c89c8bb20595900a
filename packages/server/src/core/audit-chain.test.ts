import { nodeCryptography } from '@zabra/runtime/node'
import { describe, expect, it } from 'vitest'
import { ChainReader, linkTo, NO_LINE, tailOf, type ChainState } from './audit-chain.ts'

const sha256 = () => nodeCryptography.sha256()
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

function hashOf(line: string): string {
  const hash = sha256()
  hash.update(bytes(line))
  return hash.digest()
}

/** Returns linked lines with the numbers from 1 up. */
function chain(count: number, prev = NO_LINE, from = 1): string[] {
  const lines: string[] = []
  for (let id = from; id < from + count; id++) {
    lines.push(`${linkTo(prev)}"time":"2026-11-28T00:00:00.000Z","id":${id},"tls":{"version":"é"}}`)
    prev = hashOf(lines.at(-1)!)
  }
  return lines
}

/** Reads the lines of files, each with its newline, unless a file is given as text. */
function read(
  files: Record<string, readonly string[] | string>,
  chunkBytes = 1000,
  wanted?: string,
): ChainState {
  const reader = new ChainReader(sha256, wanted)
  for (const [name, content] of Object.entries(files)) {
    reader.beginFile(name)
    const all = bytes(typeof content === 'string' ? content : content.map((line) => `${line}\n`).join(''))
    for (let at = 0; at < all.length; at += chunkBytes) reader.push(all.subarray(at, at + chunkBytes))
  }
  return reader.end()
}

const faultIn = (lines: readonly string[]): unknown => read({ log: lines }).fault

describe('the chain of an audit log', () => {
  it('has no fault over several files, and the hash of the last line as its head, however the bytes come', () => {
    const lines = chain(9)
    for (const chunkBytes of [1, 2, 3, 64, 100, 10_000]) {
      const state = read(
        { 'log.2': lines.slice(0, 4), 'log.1': lines.slice(4, 5), log: lines.slice(5) },
        chunkBytes,
      )
      expect(state).toEqual({
        lines: 9,
        unlinkedLines: 0,
        first: NO_LINE,
        head: hashOf(lines[8]!),
        torn: undefined,
        tornAt: [],
        fault: undefined,
        wantedAt: undefined,
      })
    }
  })

  it.each([
    ['a line that was changed', (l: string[]) => (l[3] = l[3]!.replace('28T', '27T')), 'changed', 4],
    [
      'a line whose hash was changed',
      (l: string[]) => (l[3] = l[3]!.replace(/"prev":"\w{64}/, `"prev":"${'a'.repeat(64)}`)),
      'changed',
      4,
    ],
    ['lines that are missing', (l: string[]) => l.splice(3, 2), 'missing', 4],
    [
      'a line that was inserted behind another',
      (l: string[]) => l.splice(3, 0, chain(1, hashOf(l[2]!), 90)[0]!),
      'inserted',
      4,
    ],
    [
      'a line that was inserted with any hash',
      (l: string[]) => l.splice(3, 0, chain(1, 'b'.repeat(64), 90)[0]!),
      'inserted',
      4,
    ],
    ['a line that is there twice', (l: string[]) => l.splice(3, 0, l[3]!), 'inserted', 4],
    ['a line that was inserted without a hash', (l: string[]) => l.splice(3, 0, '{"id":4}'), 'unlinked', 4],
    ['a line that was cut', (l: string[]) => (l[3] = l[3]!.slice(0, -2)), 'unlinked', 4],
    ['an empty line', (l: string[]) => l.splice(3, 0, ''), 'unlinked', 4],
    [
      'a last line that was cut, newline and all',
      (l: string[]) => (l[6] = l[6]!.slice(0, 40)),
      'unlinked',
      7,
    ],
    ['a chain that begins anew', (l: string[]) => l.push(...chain(2)), 'restarted', 8],
  ])('names %s', (_, damage, kind, line) => {
    const lines = chain(7)
    damage(lines)
    expect(faultIn(lines)).toEqual({ file: 'log', line, kind })
  })

  it('names the line of the other file when the end of a file was changed or removed', () => {
    const lines = chain(6)
    const [changed, removed] = [[...lines], [...lines]]
    changed[2] = changed[2]!.replace('28T', '27T')
    removed.splice(2, 1)
    expect(read({ a: changed.slice(0, 3), b: changed.slice(3) }).fault).toEqual({
      file: 'a',
      line: 3,
      kind: 'changed',
    })
    expect(read({ a: removed.slice(0, 2), b: removed.slice(2) }).fault).toEqual({
      file: 'b',
      line: 1,
      kind: 'missing',
    })
  })

  it('may begin behind lines that are not there, and behind lines without hashes', () => {
    const lines = chain(5)
    expect(read({ log: lines.slice(2) })).toMatchObject({
      fault: undefined,
      first: hashOf(lines[1]!),
      lines: 3,
    })
    const unlinked = ['INFO a line', '{"id":1}']
    const mixed = [...unlinked, ...chain(2, hashOf(unlinked[1]!))]
    expect(read({ log: mixed })).toMatchObject({ fault: undefined, unlinkedLines: 2, lines: 4 })
    mixed[1] = '{"id":2}'
    expect(read({ log: mixed }).fault).toMatchObject({ line: 2, kind: 'broken' })
  })

  it('says that no line is linked', () => {
    expect(read({ log: ['{"id":1}', '{"id":2}'] })).toMatchObject({
      lines: 2,
      unlinkedLines: 2,
      first: undefined,
    })
    expect(read({ log: [] })).toMatchObject({ lines: 0, first: undefined, head: undefined })
  })

  it('finds the line with a head that was kept, the one before the first line included', () => {
    const lines = chain(5)
    expect(read({ log: lines }, 1000, hashOf(lines[1]!)).wantedAt).toEqual({ file: 'log', line: 2 })
    expect(read({ log: lines.slice(2) }, 1000, hashOf(lines[1]!)).wantedAt).toEqual({ file: 'log', line: 1 })
    expect(read({ log: lines }, 1000, 'c'.repeat(64)).wantedAt).toBeUndefined()
  })

  it('tells a torn last line from a fault', () => {
    const lines = chain(3)
    for (const left of [1, 30, lines[2]!.length - 1, lines[2]!.length]) {
      const text = `${lines[0]}\n${lines[1]}\n${lines[2]!.slice(0, left)}`
      expect(read({ log: text })).toMatchObject({
        fault: undefined,
        head: hashOf(lines[1]!),
        tornAt: [{ file: 'log', line: 3 }],
      })
    }
  })

  it('goes on behind a torn line, in the same file or in the next one, once a line has closed it', () => {
    const [first, second, third] = chain(3) as [string, string, string]
    for (const torn of [third.slice(0, 5), third.slice(0, 100), third]) {
      const closing = `${linkTo(hashOf(torn), hashOf(second))}"op":"auditLineTorn"}`
      const after = chain(1, hashOf(closing))[0]!
      const whole = { fault: undefined, torn: undefined, head: hashOf(after) }
      expect(read({ log: [first, second, torn, closing, after] })).toMatchObject({
        ...whole,
        tornAt: [{ file: 'log', line: 3 }],
      })
      expect(read({ old: `${first}\n${second}\n${torn}`, log: [closing, after] })).toMatchObject({
        ...whole,
        tornAt: [{ file: 'old', line: 3 }],
      })
      expect(read({ log: [first, second, `${torn.slice(0, -1)}x`, closing, after] }).fault).toBeDefined()
      expect(read({ log: [first, torn, closing, after] }).fault).toBeDefined()
    }
  })
})

describe('the tail of an audit log', () => {
  const tail = (text: string, isPart = false) => tailOf(bytes(text), isPart, sha256)

  it('is the hash of the last line, linked or not', () => {
    const [first, second] = chain(2)
    expect(tail(`${first}\n${second}\n`)).toEqual({ head: hashOf(second!), torn: undefined })
    expect(tail('INFO a\nINFO b\n')).toEqual({ head: hashOf('INFO b'), torn: undefined })
    expect(tail(`half a line\n${second}\n`, true)).toEqual({ head: hashOf(second!), torn: undefined })
    expect(tail('')).toBeUndefined()
  })

  it('has the hash of what is torn, which the line that closes it has to have', () => {
    const [first, second] = chain(2) as [string, string]
    expect(tail(`${first}\n${second}`)).toEqual({ head: hashOf(first), torn: hashOf(second) })
    expect(tail('{"pre')).toEqual({ head: NO_LINE, torn: hashOf('{"pre') })
  })

  it('is closed by a line that the chain accepts, also when that was torn too', () => {
    const lines = chain(2)
    let text = `${lines[0]}\n${lines[1]!.slice(0, 50)}`
    for (const left of [20, 90, undefined]) {
      const { head, torn } = tail(text)!
      text += `\n${`${linkTo(torn!, head)}"op":"auditLineTorn"}`.slice(0, left)}`
    }
    expect(read({ log: `${text}\n` })).toMatchObject({
      fault: undefined,
      torn: undefined,
      tornAt: [{ file: 'log', line: 2 }],
    })
  })
})
