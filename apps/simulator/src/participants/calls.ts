import { ZooKeeperError, type NodeEvent, type Stat } from '@zabra/client/core'
import { plainStat, type PlainStat } from '../history/records.ts'
import type { Incarnation } from '@zabra/testing'

export type CallKind =
  | 'set'
  | 'setIf'
  | 'create'
  | 'ephemeral'
  | 'sequential'
  | 'delete'
  | 'multi'
  | 'failingMulti'
  | 'get'
  | 'exists'
  | 'children'
  | 'sync'
  | 'watch'
  | 'follow'
  | 'update'
  | 'connect'
  | 'end'

/** What a call showed of a znode, at a place in the order of its client. */
export interface Observed {
  readonly order: number
  readonly path: string
  /** Undefined when there was none. */
  readonly stat: PlainStat | undefined
  readonly data?: string
  readonly children?: readonly string[]
}

/** A watch that fires once, from its arming. */
export interface ArmedWatch {
  readonly kind: 'data' | 'exists' | 'children'
  readonly observed: Observed
  /** What it told, in the end. */
  event?: NodeEvent
  failed?: string
}

/** One call of a real client, and what came of its promise. */
export interface Call {
  /** The name of the client with its life and its number: `p0.1.2`. */
  readonly client: string
  readonly kind: CallKind
  readonly path: string
  /** The data that it alone writes; undefined for what writes none. */
  readonly uniqueData: string | undefined
  /** Whether the client may carry it out more than once: what it writes does not depend on what was there. */
  readonly isRepeatable: boolean
  readonly incarnation: Incarnation
  readonly invoked: number
  outcome: 'pending' | 'done' | 'failed'
  error?: string
  maybeApplied?: boolean
  observed?: Observed
  armed?: ArmedWatch
}

/** A client that follows one znode through a stream of events. */
export interface StreamReader {
  readonly client: string
  readonly path: string
  readonly incarnation: Incarnation
  last: PlainStat | undefined
  /** How often it has read. */
  reads: number
  /** Whether its loop has ended. */
  isEnded: boolean
}

/** All that the real clients of a run did. */
export class CallLog {
  readonly calls: Call[] = []
  readonly streamReaders: StreamReader[] = []
  /** When clients got new sessions, by their own order. */
  readonly newSessions: { readonly client: string; readonly order: number }[] = []
  /** Clients that were closed while others still worked. */
  readonly closedClients = new Set<string>()
  /** What nobody had expected: errors that are none of the client's own. */
  readonly violations: string[] = []

  /** Keeps a call, and what comes of it. The promise that it gives never rejects. */
  async track<T>(
    call: Call,
    made: Promise<T>,
    tell: (value: T) => Observed | undefined,
  ): Promise<T | undefined> {
    this.calls.push(call)
    try {
      const value = await made
      call.outcome = 'done'
      const shown = tell(value)
      if (shown !== undefined) call.observed = shown
      return value
    } catch (error) {
      call.outcome = 'failed'
      call.error = String(error)
      if (error instanceof ZooKeeperError) call.maybeApplied = error.maybeApplied
      else this.violations.push(`${call.kind} ${call.path} of ${call.client} failed with ${stackOf(error)}`)
      return undefined
    }
  }
}

const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error)

const decoder = new TextDecoder()

export const textOf = (data: Uint8Array): string => decoder.decode(data)

/** A Stat of the client in the form of the history. */
export const statOf = (stat: Stat | undefined): PlainStat | undefined =>
  stat && plainStat({ ...stat, ctime: 0n, mtime: 0n })
