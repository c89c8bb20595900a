import type { AuditEvent, AuditResult } from './audit-event.ts'

/** The events of the log of the server that say how the server was changed, with the operation and the result of their audit lines. */
const EVENTS: ReadonlyMap<string, readonly [operation: string, result: AuditResult]> = new Map([
  ['program.reloading', ['reload', 'invoked']],
  ['program.log-level', ['logLevel', 'success']],
  ['admin.log-level', ['logLevel', 'success']],
  ['admin.settings', ['settings', 'success']],
  ['admin.tokens-not-read', ['tokens', 'failure']],
  ['tls.reloaded', ['certificates', 'success']],
  ['tls.not-reloaded', ['certificates', 'failure']],
  ['quorum.features-finalized', ['finalize', 'success']],
  ['backup.made', ['backup', 'success']],
  ['backup.failed', ['backup', 'failure']],
  ['data.replaced', ['restore', 'success']],
  ['data.not-replaced', ['restore', 'failure']],
  ['data.restored', ['restore', 'success']],
  ['data.not-restored', ['restore', 'failure']],
  ['data.restore-unknown', ['restore', 'invoked']],
])

/** The ids of these events. */
export const configEventIds: readonly string[] = [...EVENTS.keys()]

/** Returns the audit event of an event of the log; undefined for one that changes nothing. */
export function configEvent(id: string, context: object, message: string): AuditEvent | undefined {
  const event = EVENTS.get(id)
  if (event === undefined) return undefined
  const [operation, result] = event
  const fields = Object.entries(context)
    .filter(([name, value]) => name !== 'id' && ['string', 'number', 'boolean'].includes(typeof value))
    .map(([name, value]) => `${name}=${value}`)
  return { category: 'config', operation, result, detail: [message, ...fields].join(' ') }
}
