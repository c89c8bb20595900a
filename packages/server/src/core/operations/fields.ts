import {
  allocateBuffer,
  copyRange,
  OPEN_ACL_BYTES,
  OPEN_ACL_UNSAFE,
  readACL,
  readACLList,
  writeACL,
  type ACL,
  type Reader,
  type Writer,
} from '@zabra/protocol'
import { MAX_ACL_ENTRIES } from '../auth/index.ts'
import type { NodeStore } from '../tree/node-store.ts'

/** Reads the most expensive fields of a request. */
export interface FieldReader {
  /** Reads the path of a node that usually exists. */
  path(body: Reader): string | null
  /** Reads the path of a node to create. */
  newPath(body: Reader): string | null
  /** Reads data. */
  data(body: Reader): Uint8Array | null
}

/** Reads a long path before the request that begins with it is decoded. */
export interface TreeFieldReader extends FieldReader {
  /** Reads the path at the offset of a body, which does not advance, and keeps it until the next path is read. */
  readAhead(body: Reader): string | null
}

/** Returns a reader of fields to keep: existing paths are the strings of the tree, and data are copies, which never change. */
export function treeFieldReader(store: NodeStore): TreeFieldReader {
  const arena = new Arena()
  let ahead: { body: Reader; from: number; to: number; path: string | null } | undefined
  return {
    readAhead(body) {
      const from = body.offset
      const path = body.string()
      ahead = { body, from, to: body.offset, path }
      body.offset = from
      return path
    },
    path(body) {
      ahead = undefined
      const node = store.findFromReader(body)
      return node === -1 ? body.string() : store.pathOf(node)
    },
    newPath(body) {
      const read = ahead
      ahead = undefined
      if (read === undefined || read.body !== body || read.from !== body.offset) return body.string()
      body.offset = read.to
      return read.path
    },
    data: (body) => arena.copyNext(body),
  }
}

/**
 * Skips fields, to check whether a request can be decoded. Whatever can be skipped can also be read: a multi is
 * prepared on that assumption.
 */
export const SKIPPING: FieldReader = {
  path: (body) => (body.skipBuffer() === -1 ? null : ''),
  newPath: (body) => (body.skipBuffer() === -1 ? null : ''),
  data: (body) => (body.skipBuffer(), null),
}

/** Reads paths and skips data. */
export const PATHS: FieldReader = {
  path: (body) => body.string(),
  newPath: (body) => body.string(),
  data: (body) => (body.skipBuffer(), null),
}

/** Finds the nodes of known paths in encoded transactions, so that their paths are not decoded again. */
export interface PathLookup {
  /** Returns the node whose path is next in a reader, and advances the reader past the path; -1, without advancing, for an unknown path. */
  findFromReader(reader: Reader): number
  pathOf(node: number): string
}

/** Reads the path of a transaction; `paths` supplies the string where it knows the path. */
export function readTxnPath(reader: Reader, paths?: PathLookup): string {
  const node = paths === undefined ? -1 : paths.findFromReader(reader)
  return node === -1
    ? (reader.string() ?? reader.fail('Expected a path, got null', 'path'))
    : paths!.pathOf(node)
}

/** An empty list, which is invalid, in place of one that is too long to be decoded. */
const TOO_LONG: readonly ACL[] = []

/** Reads the ACL of a request. Skips a list that is too long. */
export function readRequestAcl(body: Reader): readonly ACL[] | null {
  if (body.skipIfEqual(OPEN_ACL_BYTES)) return OPEN_ACL_UNSAFE
  const start = body.offset
  const count = body.vectorLength()
  if (count <= MAX_ACL_ENTRIES) {
    body.offset = start
    return readACLList(body)
  }
  for (let i = 0; i < count; i++) {
    body.int()
    body.skipBuffer()
    body.skipBuffer()
  }
  return TOO_LONG
}

/** Writes an ACL. Most are the open one, whose bytes are known. */
export function writeTxnAcl(writer: Writer, acl: readonly ACL[]): void {
  if (acl === OPEN_ACL_UNSAFE) return writer.raw(OPEN_ACL_BYTES)
  writer.int(acl.length)
  for (const entry of acl) writeACL(writer, entry)
}

/** Reads an ACL; null is an empty one. */
export function readTxnAcl(reader: Reader): readonly ACL[] {
  if (reader.skipIfEqual(OPEN_ACL_BYTES)) return OPEN_ACL_UNSAFE
  const count = Math.max(0, reader.vectorLength())
  const acl: ACL[] = []
  for (let i = 0; i < count; i++) acl.push(readACL(reader))
  return acl
}

/** Bytes of a buffer that many copies share. */
const SHARED_BYTES = 1 << 16
/** Longer data gets an array of its own, so that a transaction that is kept for long retains little else. */
const MAX_SHARED_LENGTH = 1 << 12

/**
 * Copies data out of the buffers of requests, which are reused.
 *
 * Optimised: small copies are views of one buffer that is filled from the front.
 * Why: the memory of an array lies outside of the heap; allocating, clearing and freeing it costs more than the rest of
 * preparing a small write.
 * Rules: a copy is never written to, and no part of a buffer is used twice. Tested against separate arrays, in `fields.test.ts`.
 */
export class Arena {
  #shared = allocateBuffer(0)
  #used = 0

  /** Reads a buffer and returns a copy of it, which never changes; null for null. */
  copyNext(body: Reader): Uint8Array | null {
    const start = body.skipBuffer()
    if (start === -1) return null
    const end = body.offset
    // Not `slice`: that of Node's Buffer does not copy.
    if (end - start > MAX_SHARED_LENGTH) return new Uint8Array(body.bytes.subarray(start, end))
    const at = this.#claim(end - start)
    copyRange(body.view, start, end, this.#shared.view, at)
    return this.#shared.bytes.subarray(at, at + end - start)
  }

  #claim(length: number): number {
    if (this.#used + length > this.#shared.bytes.length) {
      this.#shared = allocateBuffer(SHARED_BYTES)
      this.#used = 0
    }
    const at = this.#used
    this.#used += length
    return at
  }
}
