import type { ValueType } from './value-types.ts'

/** The settings on which a derived default can depend. */
export interface DefaultInputs {
  readonly dataDir: string
  readonly tickTimeMs: number
  readonly juteMaxBufferBytes: number
  readonly flushDelayMs: number
  readonly slowRequestMs: number
  readonly saslUsers: Readonly<Record<string, string>>
  readonly secureClientPort: number | undefined
  readonly sslProtocol: string
  readonly quorumTlsProtocol: string
}

/** Sections of the reference page. */
export type Group =
  | 'Storage and listening'
  | 'TLS and WebSockets'
  | 'Sessions'
  | 'Connections and requests'
  | 'Ensemble'
  | 'Security between members'
  | 'Log and snapshots'
  | 'Data tree'
  | 'Authentication and authorization'
  | 'Four-letter words'
  | 'Log'
  | 'Admin server'
  | 'Audit log'
  | 'Backups'

/** One setting of the server. */
export interface Row<T> {
  readonly group: Group
  /** Name in zoo.cfg. */
  readonly key: string
  /** Name of the Java system property that sets it (`-D`), if there is one. */
  readonly property?: string
  readonly type: ValueType<T>
  /** The default, or a function that derives it from other settings. */
  readonly defaultValue: NoInfer<T> | ((inputs: DefaultInputs) => NoInfer<T>)
  /** The default in words, if it is derived. */
  readonly defaultText?: string
  /** The default of Apache ZooKeeper in words, if it differs. */
  readonly apacheDefault?: string
  /** What the setting does, for operators. */
  readonly description: string
  /** Set if the value must never be shown or logged. */
  readonly isSecret?: true
  /** Set if the value is a path; relative paths are resolved against the working folder. */
  readonly isPath?: true
  /** Set if the value is the path of a file that only the user of the server should be able to read and write. */
  readonly isSecretFile?: true
  /**
   * Set if the value may change while a server runs: the server reads it each time when it needs it, or takes it anew in `applySettings`.
   * Never for what members must agree on, ports, folders and what keeps a server safe.
   */
  readonly isChangeable?: true
  /** Set if Apache ZooKeeper has no such key, so that nothing is said about how it reads a value. */
  readonly isOwn?: true
  /** Set if Apache ZooKeeper reads it as a system property only and ignores it in zoo.cfg. */
  readonly isPropertyOnly?: true
}

/** Checks a row without widening the type of its value. */
export const row = <T>(row: Row<T>): Row<T> => row
