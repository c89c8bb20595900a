import {
  adler32,
  BufferPool,
  crc32,
  OpCode,
  Perms,
  Reader,
  readText,
  Writer,
  writeMultiHeader,
  type ACL,
} from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { AclRules } from './core/auth/index.ts'
import { hashText } from './core/path-prefixes.ts'
import { PieceWriter } from './core/piece-writer.ts'
import { ReadHandlers } from './core/reads/index.ts'
import { NamespaceTraffic, Tree } from './core/tree/index.ts'
import { PathIndex } from './core/tree/path-index.ts'
import { WatchManager, WatchNotifier, type NotifiedWatcher } from './core/watches/index.ts'

/** Bytes in one turn: none of them takes a millisecond before the loops are compiled. */
const STEP_BYTES = 1 << 13
/** As many as V8 takes to compile the loops on a machine that has other work to do. Each takes processor time from the start. */
const TURNS = 100
/** Turns with one tree: code that was compiled for one object is thrown away at the next one. */
const TURNS_OF_TREE = 5
/** Entries of the access control lists. */
const ENTRIES = 20
/** Levels of a changed path, each with a recursive watch. */
const LEVELS = 100
/** Parts of a multiRead. */
const PARTS = 200

/**
 * Runs the loops over what one request may have very many of in many turns of the event loop, until V8 has compiled them: bytes,
 * characters, access entries, watched levels of a path, parts of a multiRead. The first request with a megabyte of data or a name of
 * a million characters would hold the loop for 30 ms otherwise: such loops take ten to thirty times as long before.
 */
export function warmUp(clock: Pick<Clock, 'immediate'>): void {
  const bytes = new Uint8Array(STEP_BYTES).fill(0x6e)
  const malformed = new Uint8Array(STEP_BYTES).map((_, i) => [0xed, 0xa0, 0x80][i % 3]!)
  const paths = new PathIndex(1)
  const rules = new AclRules({ skipACL: false })
  const identities = [{ scheme: 'ip', id: '127.0.0.1' }]
  const watches = new WatchManager<NotifiedWatcher>()
  const watcher: NotifiedWatcher = { watchedPaths: new Set(), identities, deliver() {} }
  const watchNotifier = new WatchNotifier(watches, rules)
  // As in connections: bodies are plain arrays or buffers of Node, and replies outgrow their first pooled buffer.
  const multiRead = multiReadOf(PARTS)
  const bodies = [multiRead, Buffer.from(multiRead)]
  const pool = new BufferPool()
  for (let level = 1; level < LEVELS; level++) watches.watchRecursively(watcher, '/n'.repeat(level))
  const deepest = '/n'.repeat(LEVELS)
  let turns = TURNS
  let tree = treeWithLists()
  // Sums of all 32 bits: code that was compiled for small numbers is thrown away at the first one.
  let [crc, adler] = [0, 1]
  const step = (): void => {
    crc = crc32(bytes, 0, bytes.length, crc)
    adler = adler32(bytes, 0, bytes.length, adler)
    readText(malformed, 0, malformed.length)
    // One of another length each time: the last hash is kept.
    const text = 'n'.repeat(STEP_BYTES - turns)
    paths.hash(text)
    hashText(text, 1)
    // Lists are compiled once, so each turn has one of its own.
    const list = listOf(turns)
    rules.accept(list, identities)
    rules.allows(list, Perms.READ, identities)
    watches.fireDataChanged(deepest, () => {})
    if (turns % TURNS_OF_TREE === 0) tree = treeWithLists()
    const reads = new ReadHandlers({ tree, acls: rules, watches, watchNotifier })
    const writer = new PieceWriter(512, pool)
    reads.execute(OpCode.multiRead, new Reader(bodies[turns % 2]!), writer, {
      listener: watcher,
      sessionId: 0n,
      identities,
    })
    writer.release()
    if (--turns > 0) clock.immediate(step)
  }
  clock.immediate(step)
}

/** Returns a tree with a node that the client may read, and one that it may not, by lists of their own. */
function treeWithLists(): Tree {
  const tree = new Tree({ extendedTypes: false, digest: false, traffic: new NamespaceTraffic() })
  const header = { sessionId: 1n, cxid: 1, zxid: 1, time: 1 }
  for (const [path, acl] of [
    ['/allowed', [...listOf(0), { perms: Perms.ALL, id: { scheme: 'world', id: 'anyone' } }]],
    ['/denied', listOf(0)],
  ] as const)
    tree.applyPart(header, {
      type: OpCode.create,
      path,
      data: new Uint8Array(1),
      acl,
      ephemeral: false,
      parentCVersion: 1,
    })
  return tree
}

/** What parts of a multiRead read: nodes with and without children or lists of their own, and one that is absent. */
const READ_PATHS = ['/zookeeper/config', '/allowed', '/denied', '/absent', '/', '/zookeeper'] as const

function multiReadOf(parts: number): Uint8Array {
  const writer = new Writer()
  for (let i = 0; i < parts; i++) {
    const type = i % (2 * READ_PATHS.length) < READ_PATHS.length ? OpCode.getData : OpCode.getChildren
    writeMultiHeader(writer, { type, done: false, err: -1 })
    writer.string(READ_PATHS[i % READ_PATHS.length]!)
    writer.bool(false)
  }
  writeMultiHeader(writer, { type: -1, done: true, err: -1 })
  return writer.take()
}

const listOf = (number: number): ACL[] =>
  Array.from({ length: ENTRIES }, (_, i) => ({
    perms: Perms.READ,
    id: { scheme: 'ip', id: `10.${number}.${i}.0/24` },
  }))
