import type { AclRules } from '../auth/index.ts'
import type { Tree } from '../tree/index.ts'
import type { Identity, SessionId } from '../types.ts'
import type { NotifiedWatcher, WatchManager, WatchNotifier } from '../watches/index.ts'

/** The dependencies of reads, shared by all connections. */
export interface ReadContext<L extends NotifiedWatcher> {
  readonly tree: Tree
  readonly acls: AclRules
  readonly watches: WatchManager<L>
  readonly watchNotifier: WatchNotifier<L>
}

/** The client that sent a read, with the identities that it had when the request arrived. */
export interface ReadCaller<L extends NotifiedWatcher> {
  /** Receives the events of the watches that the read sets. */
  readonly listener: L
  readonly sessionId: SessionId
  readonly identities: readonly Identity[]
}
