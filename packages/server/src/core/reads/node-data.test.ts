import { ErrorCode, OpCode, Writer } from '@zabra/protocol'
import { describe, expect, it as test } from 'vitest'
import { AclRules } from '../auth/index.ts'
import { ATTACHED_BYTES } from '../operations/index.ts'
import { writeData } from '../operations/node-reads.ts'
import { PieceWriter } from '../piece-writer.ts'
import { createOf } from '../testing/create-of.ts'
import { NamespaceTraffic, Tree } from '../tree/index.ts'
import { WatchManager, WatchNotifier, type NotifiedWatcher } from '../watches/index.ts'
import { Client, it } from './testing/read-fixture.ts'

/** Returns a tree with the node `/n`, and what reads it. */
function treeWith(data: Uint8Array | null) {
  const traffic = new NamespaceTraffic()
  const tree = new Tree({ extendedTypes: true, digest: true, traffic })
  const client = new Client()
  const acls = new AclRules({ skipACL: false })
  const watches = new WatchManager<NotifiedWatcher>()
  const context = { tree, acls, watches, watchNotifier: new WatchNotifier(watches, acls) }
  let zxid = 0
  const create = (path: string, bytes: Uint8Array | null): number =>
    tree.apply({ sessionId: 1n, cxid: 0, zxid: ++zxid, time: 1 }, createOf(path, { data: bytes }))
  create('/n', data)
  const read = <W extends Writer>(path: string, writer: W): W => {
    expect(writeData(context, tree.find(path), writer, client)).toBe(ErrorCode.OK)
    return writer
  }
  return { tree, traffic, create, read }
}

describe('the data of a reply', () => {
  test('are those of the node themselves from 64 KiB on, and a copy below, or where the writer takes copies alone', () => {
    for (const [length, isAttached] of [
      [ATTACHED_BYTES, true],
      [ATTACHED_BYTES + 1, true],
      [ATTACHED_BYTES - 1, false],
      [20_000, false],
      [5, false],
    ] as const) {
      const { tree, create, read } = treeWith(new Uint8Array(length).fill(7))
      const plain = read('/n', new Writer()).take()
      // The node is looked at itself, whatever else is in the tree.
      for (const others of [0, 1]) {
        if (others > 0) create('/long', new Uint8Array(ATTACHED_BYTES))
        const writer = read('/n', new PieceWriter())
        expect(writer.hasAttachments, `${length} ${others}`).toBe(isAttached)
        const own = tree.store.ownArrayOf(tree.find('/n'))
        if (isAttached) expect(writer.pieces()).toContain(own)
        expect(Buffer.concat(writer.pieces()).equals(plain)).toBe(true)
      }
    }
  })

  test('count as traffic with the path and the stat, and a stat alone without them', () => {
    for (const [data, bytes] of [
      [new Uint8Array(5), 5],
      [new Uint8Array(0), 0],
      [null, 0],
    ] as const) {
      const { traffic, read } = treeWith(data)
      read('/n', new Writer())
      expect(traffic.measured.find(({ name }) => name === 'n')?.read.totalSum).toBe('/n'.length + bytes + 68)
    }
  })
})

it('an exists counts its watch as one for a node to come where there is none', ({ fixture }) => {
  const { counts } = fixture.watches.data
  fixture.look(OpCode.exists, '/a', true)
  expect(counts).toMatchObject({ oneShot: 1, missing: 0 })
  fixture.look(OpCode.exists, '/none', true)
  expect(counts).toMatchObject({ oneShot: 2, missing: 1 })
})
