import type { Figure, Note } from '../figures.ts'
import { load } from '../load.ts'
import type { PeerKind, Peer, Settings } from '../peers.ts'
import type { Point } from '../series.ts'

/** Options of a run, from the command line. */
export interface BenchOptions {
  /** Measured seconds of each load, without its warm-up. */
  readonly seconds: number
  /** Connections, and requests in flight on each, of throughput loads. */
  readonly connections: number
  readonly depth: number
  /** Bytes of data in a znode. */
  readonly size: number
  /** Load generator processes. */
  readonly processes: number
  /** Size of the large cases as a share of their full size. */
  readonly scale: number
  /** Minutes of the endurance case. */
  readonly minutes: number
  /** Matches the names of the rows that `client-holds` measures; all of them where it is undefined. */
  readonly rows?: RegExp
}

export interface CaseContext {
  readonly options: BenchOptions
  /** The measured peer. */
  readonly kind: PeerKind
  /** Records a value of the measured peer. */
  readonly note: Note
  /** Starts a peer of the measured kind. The case must stop it. */
  readonly start: (options?: {
    members?: number
    withoutLast?: boolean
    folder?: string
    nodeFlags?: readonly string[]
    output?: string
    settings?: Settings | ((id: number) => Settings)
  }) => Promise<Peer & { readonly folder: string }>
  /** Records a time series of the measured peer. */
  readonly record: (name: string, unit: string, points: readonly Point[]) => void
  /** The figures so far, of both peers. */
  readonly figures: readonly Figure[]
}

/** One benchmark case. */
export interface Case {
  readonly name: string
  /** Description for the help text. */
  readonly about: string
  /** Measures only this kind of peer. */
  readonly only?: PeerKind
  /** The kind measured first in every round, because the other one depends on its figures. */
  readonly first?: PeerKind
  /** Runs only in the first round and is in no set, because it takes long. */
  readonly isLong?: boolean
  readonly run: (context: CaseContext) => Promise<void>
}

/** Runs `body` on a fresh peer and stops the peer afterwards. */
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

/** Returns a context that starts Zabra servers with additional Node flags. */
export const withNodeFlags = (
  context: CaseContext,
  ...flags: readonly (readonly string[])[]
): CaseContext => ({
  ...context,
  start: (options) => context.start({ ...options, nodeFlags: flags.flat() }),
})

/** Scales a count of the full size by the `scale` option, to at least 10. */
export const scaled = ({ options }: CaseContext, full: number): number =>
  Math.max(10, Math.round(full * options.scale))

/** Creates znodes that stay after the load. */
export async function createNodes(servers: string, nodes: number, size: number): Promise<void> {
  const kept = ['-k', String(nodes), '--size', String(size), '--keep']
  await load(servers, '-m', 'get', '-c', '1', '-d', '1', '-s', '1', ...kept)
}

/** Returns the arguments of a throughput load. */
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
