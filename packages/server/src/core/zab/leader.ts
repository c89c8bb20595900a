import type { EnsembleConfiguration } from '../quorum/index.ts'
import type { Zxid } from '../types.ts'
import type { Broadcast, ConnectionId, LeaderInput, LeaderOptions, LeaderWork } from './leader-types.ts'

/** One term of a leader, from the end of an election to the next one, without clock, network or disk. Skeleton: final signatures. */
export declare class Leader {
  constructor(options: LeaderOptions, broadcast: Broadcast)
  /** -1 until a quorum has agreed on one. */
  get epoch(): number
  get phase(): 'discovery' | 'synchronisation' | 'broadcast' | 'over'
  /** Whether `propose` may be called: leads, is not being handed over, and the epoch has room. */
  get accepting(): boolean
  get lastProposed(): Zxid
  get lastCommitted(): Zxid
  get outstanding(): number
  /** In force, and seen last. */
  get active(): EnsembleConfiguration
  get proposed(): EnsembleConfiguration
  step(input: LeaderInput): readonly LeaderWork[]
  /** HOT. The next transaction (`lastProposed` + 1). Throws a RangeError for any other zxid and while not `accepting`. */
  propose(zxid: Zxid, payload: Uint8Array): void
  /** HOT. A learner's ACK of a proposal; `step` takes it too. */
  ack(from: ConnectionId, zxid: Zxid): void
  /** HOT. The leader's own log is durable up to and with this zxid. */
  durable(zxid: Zxid): void
  /** HOT. Something came from a learner, or a long transfer to it made progress: it is alive. */
  heard(from: ConnectionId): void
}
