import type { RecoveryState } from '../../persistence/index.ts'
import type { AdminTarget, HealthCheck } from '../admin-target.ts'

/** Whether a client should be sent to this server now. */
export interface Readiness {
  readonly isReady: boolean
  readonly checks: readonly HealthCheck[]
}

/**
 * Returns the checks of readiness. `forReads` asks for a server that can answer reads: a read-only server and one with a full disk
 * can, though a new global session, which is a write, needs more. `recovery` is how far a server is that has no target yet.
 */
export function readiness(
  target: AdminTarget | undefined,
  { forReads = false, recovery }: { forReads?: boolean; recovery?: RecoveryState | undefined } = {},
): Readiness {
  const checks =
    target === undefined ? [check('recovery', false, recoveryText(recovery))] : checksOf(target, forReads)
  return { isReady: checks.every(({ isOk }) => isOk), checks }
}

/** Says how far a recovery is, such as `reads the log: 41 %, about 12 s`. */
function recoveryText(recovery: RecoveryState | undefined): string {
  if (recovery === undefined) return 'reads the snapshot and the log'
  const { phase, percent, etaSeconds } = recovery
  const share = percent === undefined ? '' : `: ${percent} %`
  const time = etaSeconds === undefined ? '' : `, about ${etaSeconds} s`
  return `reads the ${phase === 'replay' ? 'log' : 'snapshot'}${share}${time}`
}

function checksOf(target: AdminTarget, forReads: boolean): readonly HealthCheck[] {
  const { service, role } = target
  if (target.hasFailed)
    return [check('data', false, 'the state cannot be trusted; the log says why; restart')]
  if (!target.isListening) return [check('listeners', false, 'opens the ports of clients')]
  const isDraining = target.isStopping || target.isDraining
  const draining = check('draining', !isDraining, target.isStopping ? 'stops' : 'accepts no new sessions')
  if (service?.isReadOnly === true)
    return [draining, check('read-only', forReads, 'serves read-only clients, without a leader')]
  const checks = [draining, ...target.roleChecks()]
  if (service === undefined) {
    const isExplained = checks.some(({ name, isOk }) => name !== 'draining' && !isOk)
    return isExplained ? checks : [...checks, check('role', false, `${role}, does not serve clients`)]
  }
  checks.push(check('role', true, '', service.role.mode))
  const { certificates, platform } = target
  const end = certificates.client?.validUntil
  if (end !== undefined)
    checks.push(
      check(
        'certificate',
        end > platform.clock.wall(),
        `the certificate of the port for clients has ended at ${new Date(end).toISOString()}`,
      ),
    )
  checks.push(check('log', service.pipeline.isWritable || forReads, 'the disk is full, writes are refused'))
  return checks
}

const check = (name: string, isOk: boolean, problem: string, detail = 'ok'): HealthCheck => ({
  name,
  isOk,
  detail: isOk ? detail : problem,
})
