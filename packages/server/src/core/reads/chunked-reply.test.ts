import { ErrorCode, Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { createOf } from '../testing/create-of.ts'
import { ChildPathsCursor, Tree } from '../tree/index.ts'
import { chunkedMultiRead } from './chunked-reply.ts'

/** Writes a reply with two lists and returns its error, its bytes, and the number of steps. */
function made(children: number, limit: number): { err: unknown; length: number; turns: number } {
  const tree = new Tree({ extendedTypes: true, digest: false })
  const paths = Array.from({ length: children }, (_, i) => `/p/${1000 + i}`)
  for (const [zxid, path] of ['/p', ...paths].entries())
    tree.apply({ sessionId: 1n, cxid: 1, zxid: zxid + 1, time: 0 }, createOf(path))
  const bytes = new Uint8Array(30)
  const list = new ChildPathsCursor(tree, tree.find('/p'))
  const lists = [10, 20].map((at) => ({ at, children: list }))
  const writer = new Writer(64)
  writer.int(7)
  const steps = chunkedMultiRead(bytes, lists, { err: ErrorCode.OK, limit }).write(writer)
  let turns = 1
  let step = steps.next()
  for (; step.done !== true; step = steps.next()) turns++
  return { err: step.value, length: writer.length - 4, turns }
}

describe('a multiRead with long lists', () => {
  const size = 30 + 2 * (4 + 5000 * 8)

  it('is written in steps up to its limit', () => {
    expect(made(5000, size)).toEqual({ err: ErrorCode.OK, length: size, turns: 9 })
  })

  it('beyond the limit fails and leaves nothing in the buffer', () => {
    expect(made(5000, size - 1)).toMatchObject({ err: ErrorCode.MARSHALLINGERROR, length: 0 })
  })
})
