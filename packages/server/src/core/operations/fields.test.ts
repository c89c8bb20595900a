import { OPEN_ACL_UNSAFE, OpCode, Perms, Reader, writeACLList, Writer, type ACL } from '@zabra/protocol'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Tree } from '../tree/index.ts'
import {
  Arena,
  readRequestAcl,
  readTxnAcl,
  readTxnPath,
  SKIPPING,
  treeFieldReader,
  writeTxnAcl,
} from './fields.ts'
import { operationOf } from './table.ts'

const readerOf = (write: (writer: Writer) => void): Reader => {
  const writer = new Writer()
  write(writer)
  return new Reader(writer.take())
}
const pathOf = (path: string | null): Reader => readerOf((w) => w.string(path))

describe('a path that is read ahead', () => {
  const given = () => treeFieldReader(new Tree({ extendedTypes: true, digest: false }).store)

  it('is read again where the request is decoded, which goes on behind it', () => {
    for (const path of ['/new', '', null]) {
      const fields = given()
      const body = readerOf((w) => {
        w.string(path)
        w.int(7)
      })
      expect([fields.readAhead(body), body.offset]).toEqual([path, 0])
      expect([fields.newPath(body), body.int()]).toEqual([path, 7])
    }
  })

  it('is that of no other request, and of no other place in one', () => {
    const fields = given()
    fields.readAhead(pathOf('/first'))
    expect(fields.newPath(pathOf('/second'))).toBe('/second')
    const two = readerOf((w) => {
      w.string('/first')
      w.string('/third')
    })
    fields.readAhead(two)
    two.skipBuffer()
    expect(fields.newPath(two)).toBe('/third')
  })

  it('is kept until the next path is read', () => {
    const fields = given()
    const body = pathOf('/first')
    fields.readAhead(body)
    expect(fields.path(pathOf('/zookeeper'))).toBe('/zookeeper')
    body.bytes.set(new TextEncoder().encode('/FIRST'), 4)
    expect(fields.newPath(body)).toBe('/FIRST')
  })
})

it('fields that are skipped end where they would if they were read, and say which path is null', () => {
  for (const kind of ['path', 'newPath'] as const) {
    const skip = (from: Reader): string | null => SKIPPING[kind](from)
    const body = readerOf((w) => {
      w.string('/a')
      w.string(null)
      w.string('')
    })
    expect([skip(body), skip(body), skip(body), body.remaining]).toEqual(['', null, '', 0])
  }
})

it('the path of a transaction is that of a known node, or a new text, and never null', () => {
  const { store } = new Tree({ extendedTypes: true, digest: false })
  for (const paths of [undefined, store])
    for (const path of ['/zookeeper', '/unknown']) expect(readTxnPath(pathOf(path), paths)).toBe(path)
  expect(() => readTxnPath(pathOf(null), store)).toThrow('Expected a path, got null')
})

describe('an access control list', () => {
  const entries = (count: number): ACL[] =>
    Array.from({ length: count }, (_, i) => ({ perms: i & 31, id: { scheme: 'digest', id: `u${i}:x` } }))

  it('of a request is read up to 1,000 entries, and skipped as an invalid one beyond', () => {
    for (const [count, kept] of [
      [0, 0],
      [1, 1],
      [1000, 1000],
      [1001, 0],
    ] as const) {
      const body = readerOf((w) => {
        writeACLList(w, entries(count))
        w.int(7)
      })
      expect([readRequestAcl(body), body.int()]).toEqual([entries(kept), 7])
    }
    expect(readRequestAcl(readerOf((w) => writeACLList(w, null)))).toBeNull()
    expect(readRequestAcl(readerOf((w) => writeACLList(w, [...OPEN_ACL_UNSAFE])))).toBe(OPEN_ACL_UNSAFE)
  })

  it('of a transaction is read as it was written, and the open one is one object', () => {
    const nearlyOpen = OPEN_ACL_UNSAFE.map(({ id }) => ({ perms: Perms.READ, id }))
    for (const acl of [entries(0), entries(2), entries(1500), nearlyOpen, OPEN_ACL_UNSAFE]) {
      const reader = readerOf((w) => {
        writeTxnAcl(w, acl)
        w.int(7)
      })
      expect([readTxnAcl(reader), reader.int()]).toEqual([acl, 7])
    }
    expect(readTxnAcl(readerOf((w) => writeTxnAcl(w, OPEN_ACL_UNSAFE)))).toBe(OPEN_ACL_UNSAFE)
    expect(readTxnAcl(readerOf((w) => w.int(-1)))).toEqual([])
  })
})

it('the creation of a log from before release 3.4 has no counter of its parent', () => {
  const created = (code: typeof OpCode.create | typeof OpCode.create2, counter?: number): unknown =>
    operationOf(code).decodeTxn!(
      code,
      readerOf((w) => {
        w.string('/a')
        w.buffer(null)
        writeTxnAcl(w, OPEN_ACL_UNSAFE)
        w.bool(true)
        if (counter !== undefined) w.int(counter)
      }),
      undefined,
    )
  expect(created(OpCode.create)).toMatchObject({ ephemeral: true, parentCVersion: -1 })
  expect(created(OpCode.create, 7)).toMatchObject({ type: OpCode.create, parentCVersion: 7 })
  expect(created(OpCode.create2, 7)).toMatchObject({ type: OpCode.create2, parentCVersion: 7 })
  expect(() => created(OpCode.create2)).toThrow()
})

it('Arena gives small copies adjacent parts of one buffer, wherever they are in a request', () => {
  const reader = readerOf((w) => {
    for (const length of [5000, 10, 20, 4096, 0, 1]) w.buffer(new Uint8Array(length).fill(length))
  })
  const arena = new Arena()
  const [large, ...small] = Array.from({ length: 6 }, () => arena.copyNext(reader)!)
  expect(large!.buffer.byteLength).toBe(5000)
  expect(new Set(small.map(({ buffer }) => buffer)).size).toBe(1)
  const from = small[0]!.byteOffset
  expect(small.map(({ byteOffset }) => byteOffset - from)).toEqual([0, 10, 30, 4126, 4126])
})

it('Arena copies large data into an array of its own', () => {
  const data = new Uint8Array(5000).fill(7)
  const writer = new Writer()
  writer.buffer(data)
  const copy = new Arena().copyNext(new Reader(writer.take()))
  expect([copy, copy!.buffer.byteLength]).toEqual([data, 5000])
})

it('Arena copies the next buffer of a reader and moves the reader after it', () => {
  const sizes = fc.oneof(fc.nat(300), fc.integer({ min: 4000, max: 4200 }), fc.constant(null))
  fc.assert(
    fc.property(fc.array(sizes, { maxLength: 40 }), (lengths) => {
      const writer = new Writer()
      const data = lengths.map((length, index) =>
        length === null ? null : new Uint8Array(length).fill(index + 1),
      )
      for (const [index, each] of data.entries()) {
        writer.buffer(each)
        writer.int(index)
      }
      const chunk = writer.take()
      const [copies, reader] = [new Arena(), new Reader(chunk)]
      const made = data.map((_, index) => {
        const copy = copies.copyNext(reader)
        expect(reader.int()).toBe(index)
        return copy
      })
      chunk.fill(0xee)
      expect(made).toEqual(data)
    }),
    { seed: 7, numRuns: 60 },
  )
})

it('Arena copies large data of a Node Buffer, whose `slice` returns a view', () => {
  for (const length of [100, 5000]) {
    const chunk = Buffer.alloc(4 + length, 1)
    chunk.writeInt32BE(length)
    const copy = new Arena().copyNext(new Reader(chunk))
    chunk.fill(0xee)
    expect(copy!.every((byte) => byte === 1)).toBe(true)
  }
})
