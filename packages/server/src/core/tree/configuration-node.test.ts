import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import {
  CONFIGURATION_NODE,
  copyConfigurationNode,
  readConfigurationNode,
  replacementOf,
  writeConfigurationNode,
} from './configuration-node.ts'
import { Tree } from './tree.ts'

const text = (value: string): Uint8Array => new TextEncoder().encode(value)
const shown = (tree: Tree): string =>
  new TextDecoder().decode(tree.store.data(tree.find(CONFIGURATION_NODE)) ?? undefined)

it('writeConfigurationNode sets the text and does not change the digest', () => {
  const tree = new Tree({ extendedTypes: false, digest: true })
  const before = tree.digest
  writeConfigurationNode(tree, text('server.1=a'), 0, 5)
  expect(shown(tree)).toBe('server.1=a')
  expect(tree.statOf(tree.find(CONFIGURATION_NODE))).toMatchObject({ version: -1, mzxid: 0, mtime: 5 })
  expect(tree.digest).toEqual(before)
})

it('writeConfigurationNode keeps the text of a later transaction', () => {
  const tree = new Tree({ extendedTypes: false, digest: true })
  const header = { sessionId: 1n, cxid: 1, zxid: 0x100000005, time: 7 }
  tree.apply(header, { type: OpCode.reconfig, path: CONFIGURATION_NODE, data: text('new'), version: -1 })
  writeConfigurationNode(tree, text('old'), 0x100000000, 9)
  expect(shown(tree)).toBe('new')
  writeConfigurationNode(tree, text('newer'), 0x100000009, 9)
  expect(shown(tree)).toBe('newer')
})

it('writeConfigurationNode leaves a node with the same text as it is, and writes any other text', () => {
  const tree = new Tree({ extendedTypes: false, digest: true })
  writeConfigurationNode(tree, text('server.1=a'), 5, 5)
  writeConfigurationNode(tree, text('server.1=a'), 9, 9)
  expect(readConfigurationNode(tree)).toEqual({ text: 'server.1=a', zxid: 5 })
  for (const [at, other] of ['server.1=b', 'Server.1=b', 'server.1=', 'server.1=ab'].entries()) {
    writeConfigurationNode(tree, text(other), 10 + at, 9)
    expect(readConfigurationNode(tree)).toEqual({ text: other, zxid: 10 + at })
  }
})

it('the checksum of a text that was written without a transaction is that of one with it', () => {
  const made = (write: boolean): unknown => {
    const tree = new Tree({ extendedTypes: false, digest: true })
    if (write) writeConfigurationNode(tree, text('server.1=a'), 5, 5)
    const node = tree.find(CONFIGURATION_NODE)
    const prefix = tree.store.columns(node).crc[tree.store.slot(node)]
    const header = { sessionId: 1n, cxid: 1, zxid: 5, time: 5 }
    if (!write)
      tree.apply(header, {
        type: OpCode.reconfig,
        path: CONFIGURATION_NODE,
        data: text('server.1=a'),
        version: -1,
      })
    return write ? prefix : tree.store.columns(node).crc[tree.store.slot(node)]
  }
  expect(made(true)).toBe(made(false))
})

it('the configuration of a tree goes with it into the data that replace it', () => {
  const [from, to] = [1, 2].map(() => new Tree({ extendedTypes: false, digest: true })) as [Tree, Tree]
  writeConfigurationNode(from, text('server.1=a'), 5, 7)
  writeConfigurationNode(to, text('server.1=of another ensemble'), 99, 99)
  expect(replacementOf(to)).toBe(0)
  copyConfigurationNode(from, to, 42)
  expect(readConfigurationNode(to)).toEqual({ text: 'server.1=a', zxid: 5 })
  expect(to.statOf(to.find(CONFIGURATION_NODE))).toMatchObject({ czxid: 42, mzxid: 5, mtime: 7, version: -1 })
  expect([replacementOf(to), replacementOf(from)]).toEqual([42, 0])
})

it('a tree without the node has no configuration and takes none', () => {
  const bare = (): Tree => {
    const tree = new Tree({ extendedTypes: false, digest: true })
    tree.clear()
    return tree
  }
  const [tree, whole] = [bare(), new Tree({ extendedTypes: false, digest: true })]
  writeConfigurationNode(whole, text('server.1=a'), 5, 7)
  writeConfigurationNode(tree, text('server.1=a'), 5, 7)
  copyConfigurationNode(whole, tree, 42)
  copyConfigurationNode(tree, whole, 42)
  expect([tree.has(CONFIGURATION_NODE), replacementOf(tree), replacementOf(whole)]).toEqual([false, 0, 0])
  expect([readConfigurationNode(tree), readConfigurationNode(whole)]).toEqual([
    { text: '', zxid: 0 },
    { text: 'server.1=a', zxid: 5 },
  ])
})
