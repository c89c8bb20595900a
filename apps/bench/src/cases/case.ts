import type { Figure, Note } from '../figures.ts'
import { load } from '../load.ts'
import type { PeerKind, Peer } from '../peers.ts'
import type { Point } from '../series.ts'

/** What the caller may choose. */
export interface BenchOptions {
  /** Seconds of counting for each load. */
  readonly seconds: number
  /** Connections and requests in flight on each, for the loads that are about throughput. */
  readonly connections: number
  readonly depth: number
  /** Bytes of data in a znode. */
  readonly size: number
  /** Processes that make the load. */
  readonly processes: number
  /** By how much the large cases are made smaller, for a quick look: 1 is their full size. */
  readonly scale: number
  /** Minutes of the long run. */
  readonly minutes: number
}

export interface CaseContext {
  readonly options: BenchOptions
  /** The peer that is measured. */
  readonly kind: PeerKind
  /** Takes a value of the peer that is measured. */
  readonly note: Note
  /** Starts a peer of the kind that is measured. Stop it. */
  readonly start: (options?: {
    members?: number
    late?: boolean
    folder?: string
    nodeFlags?: readonly string[]
    output?: string
  }) => Promise<Peer & { readonly folder: string }>
  /** Takes what was watched over the time of a long run, of the peer that is measured. */
  readonly record: (name: string, unit: string, points: readonly Point[]) => void
  /** What was measured so far, of both peers. */
  readonly figures: readonly Figure[]
}

/** One question that the bench answers. */
export interface Case {
  readonly name: string
  /** What it measures, in a sentence. */
  readonly about: string
  /** Leaves a peer out about which there is nothing to ask. */
  readonly only?: PeerKind
  /** Who goes first in every round, since the other one is given what it did. */
  readonly first?: PeerKind
  /** Runs in the first round only, and when it is asked for by name: it takes long. */
  readonly isLong?: boolean
  readonly run: (setting: CaseContext) => Promise<void>
}

/** Runs `body` on a fresh peer and stops it afterwards, whatever happens. */
export async function withPeer<T>(
  { start }: CaseContext,
  members: number,
  body: (peer: Peer & { readonly folder: string }) => Promise<T>,
): Promise<T> {
  const peer = await start({ members })
  try {
    return await body(peer)
  } finally {
    await peer.stop()
  }
}

/** Starts our servers with flags that have their Node tell what nobody can ask them for. */
export const withNodeFlags = (setting: CaseContext, ...flags: readonly (readonly string[])[]): CaseContext => ({
  ...setting,
  start: (options) => setting.start({ ...options, nodeFlags: flags.flat() }),
})

/** A number that belongs to the full size, made smaller when only a quick look is wanted. */
export const scaled = ({ options: choices }: CaseContext, full: number): number =>
  Math.max(10, Math.round(full * choices.scale))

/** Makes nodes that stay. */
export async function createNodes(servers: string, nodes: number, size: number): Promise<void> {
  const kept = ['-k', String(nodes), '--size', String(size), '--keep']
  await load(servers, '-m', 'get', '-c', '1', '-d', '1', '-s', '1', ...kept)
}

/** The arguments of a load that is about throughput. */
export function loadArgs({ connections, depth, size, seconds, processes }: BenchOptions): string[] {
  return [
    '-c',
    String(connections),
    '-d',
    String(depth),
    '--size',
    String(size),
    '-s',
    String(seconds),
    '-p',
    String(processes),
  ]
}
