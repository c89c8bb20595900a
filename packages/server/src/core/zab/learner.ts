import type { Zxid } from '../types.ts'
import type { LearnerInput, LearnerOptions, LearnerWork, Replica } from './learner-types.ts'

/** One term of a learner, follower or observer, without clock, network or disk. Skeleton: final signatures. */
export declare class Learner {
  constructor(options: LearnerOptions, replica: Replica)
  /** -1 until the leader has said it. */
  get epoch(): number
  get phase(): 'connecting' | 'discovery' | 'synchronisation' | 'waiting' | 'broadcast' | 'over'
  step(input: LearnerInput): readonly LearnerWork[]
  /** HOT. A packet of the leader. Its data must not change afterwards. The result is empty for PROPOSAL, COMMIT and INFORM in broadcast. */
  receive(type: number, zxid: Zxid, data: Uint8Array | null): readonly LearnerWork[]
  /** HOT. The log is durable up to and with this zxid. */
  durable(zxid: Zxid): void
  /** HOT. Bytes came from the leader, of a snapshot for example: it is alive. */
  heard(): void
}
