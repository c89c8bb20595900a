/** The pipeline of each role: executes writes, syncs and sessions on the server that decides, and on the others. */
export type {
  ClientOrigin,
  AcceptedWrite,
  ClientWrite,
  PipelineContext,
  QuorumProtocol,
  RecordedDigests,
  RequestPipeline,
  RevalidationCallback,
  WriteCallback,
} from './types.ts'
export { LeaderPipeline } from './leader-pipeline.ts'
export { LearnerPipeline } from './learner-pipeline.ts'
export type { LeaderChannel } from './learner-pipeline.ts'
export { ReadOnlyPipeline } from './read-only-pipeline.ts'
export { movedSessionCheck } from './session-routes.ts'
