import type { Reader } from '@zabra/protocol'
import type { NodeStore } from '../tree/node-store.ts'
import type { Arena } from './arena.ts'

/** Reads the most expensive fields of a request. */
export interface FieldReader {
  /** Reads the path of a node that usually exists. */
  path(body: Reader): string | null
  /** Reads the path of a node to create. */
  newPath(body: Reader): string | null
  /** Reads data. */
  data(body: Reader): Uint8Array | null
}

/** Reads fields to keep: existing paths are the strings of the tree, and data are copies, which never change. */
export const treeFieldReader = (store: NodeStore, arena: Arena): FieldReader => ({
  path: (body) => {
    const node = store.findFromReader(body)
    return node === -1 ? body.string() : store.pathOf(node)
  },
  newPath: (body) => body.string(),
  data: (body) => arena.copyNext(body),
})

/**
 * Skips fields, to check whether a request can be decoded. Whatever can be skipped can also be read: a multi is
 * prepared on that assumption.
 */
export const SKIPPING: FieldReader = {
  path: (body) => (body.skipBuffer() === -1 ? null : ''),
  newPath: (body) => (body.skipBuffer() === -1 ? null : ''),
  data: (body) => (body.skipBuffer(), null),
}
