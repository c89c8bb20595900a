import type { ServerAddress } from '@zabra/client'
import type { Connection } from '@zabra/runtime'

/** The kinds of load, with what each does. */
export const modes = {
  get: 'reads',
  set: 'writes to nodes that exist',
  create: 'new nodes',
  mixed: 'reads and writes, by --reads',
  watch: 'one node watched by every connection, written again and again',
  connect: 'new sessions, as many as --connections',
  hold: 'sessions that stay and do nothing, with --watches on each',
  classic: '110,000 operations per connection: creations, writes, reads, deletions, ephemerals, watches',
} as const

export type Mode = keyof typeof modes

/** What is to be done. */
export interface Plan {
  readonly mode: Mode
  /** The node below which everything happens; it exists. */
  readonly root: string
  readonly connections: number
  /** Requests in flight on each connection. */
  readonly depth: number
  /** Bytes of data of each node. */
  readonly size: number
  /** Nodes that are read and written. */
  readonly keys: number
  /** Percent of a mixed load that reads. */
  readonly reads: number
  /** How long answers are counted; a quarter of it goes before, uncounted. */
  readonly seconds: number
  /** Operations of each kind in the classic load. */
  readonly count: number
  /** Requests a second on all connections together; 0 is as many as there are answers. */
  readonly rate: number
  /** One-shot watches on each connection that holds. */
  readonly watches: number
}

/** One process's part of a plan. */
export interface ProcessShare extends Plan {
  /** Numbers of its connections, from `first` on. */
  readonly first: number
  readonly ownConnections: number
}

/** How a load reaches its servers. */
export interface LoadTarget {
  readonly servers: readonly ServerAddress[]
  readonly open: (server: ServerAddress, signal: AbortSignal) => Promise<Connection>
  readonly auth: readonly { readonly scheme: string; readonly credential: string }[]
  readonly timeoutMs: number
}

/** What a process tells the one that leads it. */
export interface Control {
  /** Waits until all processes have come here, and gives what each of them has brought. */
  readonly barrier: (brought: number) => Promise<readonly number[]>
  /** So many more operations are done. */
  readonly progress: (operations: number) => void
  /** Something that a person who waits should know. */
  readonly note: (line: string) => void
  readonly signal: AbortSignal
}

/** Which connections a process has when all are dealt out evenly. */
export function shareOf(plan: Plan, index: number, processes: number): ProcessShare {
  const first = Math.floor((plan.connections * index) / processes)
  const end = Math.floor((plan.connections * (index + 1)) / processes)
  return { ...plan, first, ownConnections: end - first }
}

/** Where node number `key` of the shared nodes is. */
export const keyPath = ({ root }: Plan, key: number): string => `${root}/key-${key}`
