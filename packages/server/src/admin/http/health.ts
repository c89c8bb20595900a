import type { AdminTarget } from '../admin-target.ts'

/** One check of readiness. */
export interface HealthCheck {
  readonly name: string
  readonly isOk: boolean
  readonly detail: string
}

/** Whether a client should be sent to this server now. */
export interface Readiness {
  readonly isReady: boolean
  readonly checks: readonly HealthCheck[]
}

/**
 * Returns the checks of readiness. `forReads` asks for a server that can answer reads: a read-only server and one with a full disk
 * can, though a new global session, which is a write, needs more.
 */
export function readiness(target: AdminTarget | undefined, { forReads = false } = {}): Readiness {
  const checks = checksOf(target, forReads)
  return { isReady: checks.every(({ isOk }) => isOk), checks }
}

function checksOf(target: AdminTarget | undefined, forReads: boolean): HealthCheck[] {
  if (target === undefined) return [check('recovery', false, 'reads the snapshot and the log')]
  const { service, role } = target
  const checks = [check('stopping', !target.isStopping, 'stops')]
  if (service === undefined)
    return [
      ...checks,
      check('role', false, role === 'looking' ? 'looks for a leader' : `${role}, not synced yet`),
    ]
  checks.push(check('role', !service.isReadOnly || forReads, `read-only, without a leader`, role))
  if (!service.isReadOnly)
    checks.push(check('log', service.pipeline.isWritable || forReads, 'the disk is full, writes are refused'))
  return checks
}

const check = (name: string, isOk: boolean, problem: string, detail = 'ok'): HealthCheck => ({
  name,
  isOk,
  detail: isOk ? detail : problem,
})
