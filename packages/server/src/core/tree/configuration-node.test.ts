import { OpCode } from '@zabra/protocol'
import { expect, it } from 'vitest'
import { CONFIGURATION_NODE, writeConfigurationNode } from './configuration-node.ts'
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
