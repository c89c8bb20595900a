/** How a leader and its learners keep one history (ZAB): machines without network, disk or clock. */
export { encodePacket, NO_ZXID, packetName, PacketType, writePacket } from './packets.ts'
export type { QuorumPacket } from './packets.ts'
export * from './payloads.ts'
export { CommittedWindow, isNextZxid, MIN_WINDOW } from './committed-window.ts'
export { Entries } from './entries.ts'
export type { DiskRange, PlannedEntry, SyncPlan, SyncSources } from './sync-plan.ts'
export type {
  StepDownReason,
  Broadcast,
  ConnectionId,
  LeaderInput,
  LeaderOptions,
  LeaderWork,
} from './leader-types.ts'
export type { LearnerInput, LearnerOptions, LearnerWork, Replica } from './learner-types.ts'
export { PacketSplitter } from './packet-splitter.ts'
export type { PacketSplitterOptions } from './packet-splitter.ts'
export { proposedConfiguration } from './reconfig-txn.ts'
export { planSync } from './sync-plan.ts'
export { Leader } from './leader.ts'
export { QuorumOfOne } from './quorum-of-one.ts'
export { Learner } from './learner.ts'
export { ObserverMaster } from './observer-master.ts'
export type { ObserverMasterInput, ObserverMasterOptions, ObserverMasterWork } from './observer-master.ts'
