import { formatZxid, OpCode, Reader } from '@zabra/protocol'
import { invariant, type Logger } from '@zabra/runtime'
import type { SessionMap } from '../core/session-map.ts'
import { appliesInSteps, applyInSteps, OPEN_ACL_ID, type Tree } from '../core/tree/index.ts'
import type { LoggedTxn, Zxid } from '../core/types.ts'
import {
  decodeInSteps,
  decodeLoggedTxn,
  DivergenceError,
  hasNonAsciiPaths,
  isLargePayload,
  isSuccessor,
  RecoveryError,
  type RawTxn,
  type Recovery,
} from '../persistence/index.ts'
import type { ReceivedSnapshot } from './snapshot-receiver.ts'

/** Holds the tree in memory and its sessions, and whether the files contain the same. */
export class TreeState {
  readonly #logger: Logger
  readonly #isDigestEnabled: boolean
  tree: Tree
  /** Sessions with their timeouts in milliseconds. */
  sessions: SessionMap<number>
  /** Whether the tree was found to differ from the history, so that it must be loaded again. */
  isWrong = false
  /** The last transaction of the files, while the tree is a new one that is not on disk. */
  #zxidOfFiles: Zxid | undefined
  #canCompareDigests: boolean
  /** Nodes whose access control list neither the snapshot nor a transaction has contained yet. */
  #nodesWithoutAcl: readonly string[] = []

  constructor(recovery: Recovery, logger: Logger, digestEnabled: boolean) {
    this.#logger = logger
    this.#isDigestEnabled = digestEnabled
    this.tree = recovery.tree
    this.sessions = recovery.sessions
    this.#canCompareDigests = recovery.canCompareDigests
  }

  get zxidOfFiles(): Zxid | undefined {
    return this.#zxidOfFiles
  }
  get isUninstalled(): boolean {
    return this.#zxidOfFiles !== undefined
  }

  /** Takes over the result of a recovery. */
  load({ tree, sessions, canCompareDigests }: Recovery): void {
    this.tree = tree
    this.sessions = sessions
    this.#canCompareDigests = canCompareDigests
    this.#zxidOfFiles = undefined
    this.#nodesWithoutAcl = []
  }

  /** Replaces the tree by a new one, whose files do not exist yet. `lastZxid` is the last transaction of the present ones. */
  replace({ tree, sessions, nodesWithoutAcl }: ReceivedSnapshot, lastZxid: Zxid): void {
    this.#zxidOfFiles ??= lastZxid
    this.tree = tree
    this.sessions = sessions
    this.#nodesWithoutAcl = nodesWithoutAcl
  }

  /** Notes that the tree is on disk. */
  installed(): void {
    this.#canCompareDigests = true
    this.#zxidOfFiles = undefined
    this.isWrong = false
  }

  /** Decodes and applies a transaction. Throws a `DivergenceError` when the tree has another digest than its leader's after it. */
  apply(payload: Uint8Array): LoggedTxn {
    const logged = decodeLoggedTxn(new Reader(payload))
    this.#apply(logged)
    return logged
  }

  /**
   * Does as `apply`. Returns the steps of a large transaction, between which the tree is inconsistent; undefined for others, which are
   * applied at once. `decoded` is the decoded payload, if the caller has it.
   */
  applyInSteps(payload: Uint8Array, decoded?: LoggedTxn): Generator<void> | undefined {
    if (isLargePayload(payload)) return this.#decodeInSteps(payload)
    const logged = decoded ?? decodeLoggedTxn(new Reader(payload))
    if (appliesInSteps(this.tree, logged.txn)) return this.#applyInSteps(logged)
    this.#apply(logged)
    return undefined
  }

  *#decodeInSteps(payload: Uint8Array): Generator<void> {
    yield* this.#applyInSteps(yield* decodeInSteps(new Reader(payload)))
  }

  *#applyInSteps(logged: LoggedTxn): Generator<void> {
    const { header, txn } = logged
    const isNext = header.zxid > this.tree.lastZxid
    yield* applyInSteps(this.tree, header, txn)
    this.#applied(logged, isNext)
  }

  #apply(logged: LoggedTxn): void {
    const { header, txn } = logged
    const isNext = header.zxid > this.tree.lastZxid
    this.tree.apply(header, txn)
    this.#applied(logged, isNext)
  }

  #applied({ header, txn, digest }: LoggedTxn, isNext: boolean): void {
    if (txn.type === OpCode.createSession) this.sessions.set(header.sessionId, txn.timeOut)
    else if (txn.type === OpCode.closeSession) this.sessions.delete(header.sessionId)
    // A streamed tree changed while it was sent; it agrees with the leader's only once everything after the stream is applied.
    const isComparable = isNext && this.#canCompareDigests && !this.isUninstalled && this.#isDigestEnabled
    if (!isComparable || digest === undefined || this.tree.matches(digest)) return
    if (!hasNonAsciiPaths(this.tree)) throw new DivergenceError(header.zxid)
    this.#canCompareDigests = false
    this.#logger.warn(
      { zxid: formatZxid(header.zxid) },
      'Digests are not compared any more: there are names beyond ASCII, and the leader encodes names in another way than UTF-8',
    )
  }

  /** Applies the transactions of the log after `tree.lastZxid`, up to `last`. */
  async catchUp(entries: AsyncIterable<RawTxn>, last: Zxid): Promise<void> {
    const before = this.tree.lastZxid
    let count = 0
    for await (const { zxid, payload } of entries) {
      invariant(count > 0 || isSuccessor(zxid, before), 'The log continues where the tree ends.', {
        tree: formatZxid(before),
        log: formatZxid(zxid),
      })
      this.apply(payload)
      count++
    }
    invariant(this.tree.lastZxid === last, 'A role leaves a tree that has all of its log.', {
      tree: formatZxid(this.tree.lastZxid),
      log: formatZxid(last),
    })
    this.#logger.info(
      { from: formatZxid(before), to: formatZxid(last), transactions: count },
      'Applied what was logged and not yet committed when the role ended',
    )
  }

  /** Throws a `RecoveryError` if a node has no access control list, which the snapshot or a later transaction must contain. */
  rejectNodesWithoutAcl(folder: string): void {
    const { tree } = this
    const left = this.#nodesWithoutAcl.find(
      (path) => tree.has(path) && tree.aclIdOf(tree.find(path)) === OPEN_ACL_ID,
    )
    if (left === undefined) return
    throw new RecoveryError(
      `Expected the access list of ${left} in the snapshot of the leader or after it, got neither`,
      folder,
      'Connect again; the data on disk are as before.',
    )
  }
}
