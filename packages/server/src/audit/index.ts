/** The audit log: who changed what, in the lines of Apache ZooKeeper or as JSON. */
export type { AuditCategory, AuditEvent, AuditResult } from './audit-event.ts'
export { originOf } from './audit-event.ts'
export { recordRead } from './audited-reads.ts'
export { configEvent, configEventIds } from './config-events.ts'
export { AuditFile } from './audit-file.ts'
export { AuditLog } from './audit-log.ts'
export { auditedContext, AuditedPipeline, recordRefusal, userNames } from './audited-pipeline.ts'
