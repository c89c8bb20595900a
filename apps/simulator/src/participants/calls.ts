import { ZooKeeperError, type NodeEvent, type Stat } from '@zabra/client/core'
import { plainStat, type PlainStat } from '../history/records.ts'
import type { Incarnation } from '@zabra/testing'
import type { ParticipantOperation } from './plan.ts'

export type CallKind =
  | Exclude<ParticipantOperation, 'move' | 'reconnect'>
  | 'follow'
  | 'update'
  | 'connect'
  | 'end'

/** What a call showed of a znode, with its position in the order of its client. */
export interface Observed {
  readonly order: number
  readonly path: string
  /** Undefined when the node did not exist. */
  readonly stat: PlainStat | undefined
  readonly data?: string
  readonly children?: readonly string[]
}

/** A one-shot watch. */
export interface ArmedWatch {
  readonly kind: 'data' | 'exists' | 'children'
  readonly observed: Observed
  /** The event that it reported. */
  event?: NodeEvent
}

/** One call of a library client and its outcome. */
export interface Call {
  /** The name of the client with its incarnation and number: `p0.1.2`. */
  readonly client: string
  readonly kind: CallKind
  readonly path: string
  /** Data that only this call writes; undefined when it writes none. */
  readonly uniqueData: string | undefined
  /** Whether the client may repeat it: what it writes does not depend on the previous state. */
  readonly isRepeatable: boolean
  readonly incarnation: Incarnation
  readonly invoked: number
  outcome: 'pending' | 'done' | 'failed'
  error?: string
  maybeApplied?: boolean
  observed?: Observed
  armed?: ArmedWatch
}

/** A client that follows one znode with a persistent watch. */
export interface StreamReader {
  readonly client: string
  readonly path: string
  readonly incarnation: Incarnation
  last: PlainStat | undefined
  /** Number of reads. */
  reads: number
  /** Whether its event loop has ended. */
  isEnded: boolean
}

/** All calls of the library clients of a run. */
export class CallLog {
  readonly calls: Call[] = []
  readonly streamReaders: StreamReader[] = []
  /** New sessions of clients, by position in their own order. */
  readonly newSessions: { readonly client: string; readonly order: number }[] = []
  /** Clients that were closed while the run went on. */
  readonly closedClients = new Set<string>()
  /** Errors that are not of the client's own types. */
  readonly violations: string[] = []

  /** Records a call and its outcome. The returned promise never rejects. */
  async track<T>(
    call: Call,
    made: Promise<T>,
    observe: (value: T) => Observed | undefined,
  ): Promise<T | undefined> {
    this.calls.push(call)
    try {
      const value = await made
      call.outcome = 'done'
      const shown = observe(value)
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

/** Converts a Stat of the client library. */
export const statOf = (stat: Stat | undefined): PlainStat | undefined => stat && plainStat(stat)
