import type { ServerAddress } from '@zabra/client'
import type { Connection } from '@zabra/runtime'

/** The kinds of load, with their descriptions for `--help`. */
export const modes = {
  get: 'reads',
  set: 'writes to existing nodes',
  create: 'creations',
  mixed: 'reads and writes, in the ratio of --reads',
  watch: 'repeated writes to a node that every connection watches',
  connect: 'new sessions, as many as --connections',
  hold: 'idle sessions, each with --watches',
  classic: '110,000 operations per connection: creations, writes, reads, deletions, ephemerals, watches',
} as const

export type Mode = keyof typeof modes

/** Parameters of a load. */
export interface Plan {
  readonly mode: Mode
  /** Parent of all nodes of the load; it exists. */
  readonly root: string
  readonly connections: number
  /** Requests in flight on each connection. */
  readonly depth: number
  /** Bytes of data per node. */
  readonly size: number
  /** Nodes that are read and written. */
  readonly keys: number
  /** Percentage of reads in a mixed load. */
  readonly reads: number
  /** Duration of the measurement; the warm-up before it takes a quarter of this. */
  readonly seconds: number
  /** Operations of each kind in the classic load. */
  readonly count: number
  /** Requests per second on all connections together; 0 means unlimited. */
  readonly rate: number
  /** One-shot watches per connection in the hold load. */
  readonly watches: number
}

/** A plan with the connections of one process. */
export interface ProcessShare extends Plan {
  /** Index of the first connection of this process; they are contiguous. */
  readonly first: number
  readonly ownConnections: number
}

/** Servers of a load and how to connect to them. */
export interface LoadTarget {
  readonly servers: readonly ServerAddress[]
  readonly open: (server: ServerAddress, signal: AbortSignal) => Promise<Connection>
  readonly auth: readonly { readonly scheme: string; readonly credential: string }[]
  readonly timeoutMs: number
}

/** How a process reports to the coordinator. */
export interface Control {
  /** Waits until all processes have called it; resolves to the value of each. */
  readonly barrier: (value: number) => Promise<readonly number[]>
  /** Adds to the number of completed operations. */
  readonly progress: (operations: number) => void
  /** Prints a line for the user. */
  readonly note: (line: string) => void
  readonly signal: AbortSignal
}

/** Returns the part of a process when connections are distributed evenly. */
export function shareOf(plan: Plan, index: number, processes: number): ProcessShare {
  const first = Math.floor((plan.connections * index) / processes)
  const end = Math.floor((plan.connections * (index + 1)) / processes)
  return { ...plan, first, ownConnections: end - first }
}

/** Returns the path of a shared node. */
export const keyPath = ({ root }: Plan, key: number): string => `${root}/key-${key}`
