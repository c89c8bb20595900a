/** The client side of each role: what happens to writes, syncs and sessions where this server decides, and where another does. */
export type {
  RevalidationCallback,
  AcceptedWrite,
  RecordedDigests,
  WriteCallback,
  ClientWrite,
  RequestPipeline,
  PipelineContext,
} from './types.ts'
export { LeaderPipeline } from './leader-pipeline.ts'
export type { PipelineLog, ForwardedRequest, QuorumProtocol } from './leader-types.ts'
export { LearnerPipeline } from './learner-pipeline.ts'
export type { Forwarded, LeaderChannel } from './learner-pipeline.ts'
export { ReadOnlyPipeline } from './read-only-pipeline.ts'
