import type { ValueType } from './value-types.ts'

/** What a derived default may depend on. */
export interface DefaultInputs {
  readonly dataDir: string
  readonly tickTimeMs: number
  readonly juteMaxBufferBytes: number
  readonly flushDelayMs: number
  readonly saslUsers: Readonly<Record<string, string>>
  readonly secureClientPort: number | undefined
  readonly sslProtocol: string
}

export type Group =
  | 'Storage and listening'
  | 'TLS and WebSockets'
  | 'Sessions'
  | 'Connections and requests'
  | 'Ensemble'
  | 'Log and snapshots'
  | 'Data tree'
  | 'Authentication and authorization'
  | 'Four-letter words'

/** One setting that the server honours. */
export interface Row<T> {
  readonly group: Group
  /** Its name in zoo.cfg. */
  readonly key: string
  /** Its Java system property, when it has one: what `-D` sets. */
  readonly property?: string
  readonly type: ValueType<T>
  /** The value when nobody sets it, or how it follows from others. */
  readonly defaultValue: NoInfer<T> | ((basis: DefaultInputs) => NoInfer<T>)
  /** The fallback in words, when it is derived. */
  readonly defaultText?: string
  /** What Apache ZooKeeper takes when ours is another. */
  readonly apacheDefault?: string
  /** One sentence for the operator. */
  readonly description: string
  /** Its value is never shown. */
  readonly isSecret?: true
  /** A path: relative ones are resolved against the working folder. */
  readonly isPath?: true
  /** ZooKeeper honours it as a system property only, and ignores it in zoo.cfg. */
  readonly isPropertyOnly?: true
}

/** Keeps the type of a row's value while checking the row. */
export const row = <T>(row: Row<T>): Row<T> => row
