/** Types of watch events (`Watcher.Event.EventType`). Only 1 to 4 are sent on the wire. */
export const EventType = {
  None: -1,
  NodeCreated: 1,
  NodeDeleted: 2,
  NodeDataChanged: 3,
  NodeChildrenChanged: 4,
  DataWatchRemoved: 5,
  ChildWatchRemoved: 6,
  PersistentWatchRemoved: 7,
} as const
export type EventType = (typeof EventType)[keyof typeof EventType]

/** State of the client in an event (`Watcher.Event.KeeperState`). On the wire it is always 3. */
export const KeeperState = {
  Expired: -112,
  Unknown: -1,
  Disconnected: 0,
  NoSyncConnected: 1,
  SyncConnected: 3,
  AuthFailed: 4,
  ConnectedReadOnly: 5,
  SaslAuthenticated: 6,
  Closed: 7,
} as const
export type KeeperState = (typeof KeeperState)[keyof typeof KeeperState]

/** Modes of addWatch. */
export const WatchMode = { PERSISTENT: 0, PERSISTENT_RECURSIVE: 1 } as const
export type WatchMode = (typeof WatchMode)[keyof typeof WatchMode]

/** Types of watches in checkWatches and removeWatches. */
export const WatcherType = { Children: 1, Data: 2, Any: 3, Persistent: 4, PersistentRecursive: 5 } as const
export type WatcherType = (typeof WatcherType)[keyof typeof WatcherType]
