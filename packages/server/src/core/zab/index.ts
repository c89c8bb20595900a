/** The leader, learner and observer master of ZAB as state machines without network, disk or clock. */
export { encodePacket, NO_ZXID, packetName, PacketSplitter, PacketType, writePacket } from './packets.ts'
export type { PacketSplitterOptions, QuorumPacket } from './packets.ts'
export {
  decodeAckEpoch,
  decodeConfiguration,
  decodeConfigurationText,
  decodeDesignatedLeader,
  decodeForwardedRequest,
  decodeInformAndActivate,
  decodeLeaderInfo,
  decodeLearnerInfo,
  decodeRevalidation,
  decodeRevalidationReply,
  decodeSecretReport,
  decodeSnapshotInfo,
  encodeAckEpoch,
  encodeConfigurationText,
  encodeDesignatedLeader,
  encodeInformAndActivate,
  encodeLeaderInfo,
  encodeLearnerInfo,
  encodeRevalidation,
  encodeRevalidationReply,
  encodeSecretReport,
  encodeSnapshotInfo,
  encodeTouches,
  LEADER_INFO_BYTES,
  LEARNER_INFO_BYTES,
  proposedConfiguration,
  PROTOCOL_VERSION,
  touchSteps,
  writeForwardedRequest,
  type ForwardedRequest,
  type LearnerInfo,
  type Revalidation,
  type RevalidationReply,
  type SecretReport,
  type SharedSecret,
} from './payloads.ts'
export {
  decodeStopPermitAnswer,
  decodeStopPermitRequest,
  encodeStopPermitAnswer,
  encodeStopPermitRequest,
  MAX_STOP_PERMIT_MS,
  type StopDecision,
  type StopPermitAnswer,
  type StopPermitRequest,
  type StopPermitResult,
} from './stop-permit.ts'
export {
  decodeLeaderReportPacket,
  decodeLearnerReportPacket,
  encodeLeaderReportPacket,
  encodeLearnerReportPacket,
  MAX_REPORT_BYTES,
  MAX_REPORTS_BYTES,
  setReportNumber,
  type LeaderReportPacket,
  type LearnerReportPacket,
  type ReportOfMember,
  type ReportReason,
  type ReportsResult,
} from './member-report.ts'
export {
  decodeMemberExtension,
  encodeMemberExtension,
  MEMBER_EXTENSION_BYTES,
  withExtension,
} from './member-extension.ts'
export type { MemberExtension } from './member-extension.ts'
export {
  decodeFeatureReport,
  decodeFeatureState,
  encodeFeatureReport,
  encodeFeatureState,
  type MemberFeatures,
} from './feature-report.ts'
export { CommittedWindow, isNextZxid, MIN_WINDOW } from './committed-window.ts'
export type { DiskRange, SyncPlan, SyncSources } from './sync-plan.ts'
export type {
  ChosenSuccessor,
  ConnectionId,
  LeaderInput,
  LeaderOptions,
  LeaderWork,
  StepDownReason,
} from './leader-types.ts'
export type { LearnerInput, LearnerOptions, LearnerWork } from './learner-types.ts'
export { planSync } from './sync-plan.ts'
export { Leader } from './leader.ts'
export { QuorumOfOne } from './quorum-of-one.ts'
export type { QuorumOfOneWork } from './quorum-of-one.ts'
export { MAX_LEADER_EPOCH } from './epoch-agreement.ts'
export { Learner } from './learner.ts'
export { ObserverMaster } from './observer-master.ts'
export type { ObserverMasterInput, ObserverMasterOptions, ObserverMasterWork } from './observer-master.ts'
