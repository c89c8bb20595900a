import { formatZxid } from '@zabra/protocol'
import type { HttpRequest, HttpResponse, Platform } from '@zabra/runtime'
import type { RecoveryProgress } from '../../persistence/index.ts'
import type { ServerSettings } from '../../settings/index.ts'
import type { AdminTarget, HealthCheck } from '../admin-target.ts'
import { json } from './api/api-route.ts'
import { readiness } from './health.ts'
import { text } from './text-response.ts'

export interface HealthProbesOptions {
  readonly settings: Pick<ServerSettings, 'adminLivezStallMs'>
  readonly platform: Pick<Platform, 'clock' | 'logger'>
  readonly recovery: RecoveryProgress
  /** Returns the server; undefined before it has read its data. */
  readonly target: () => AdminTarget | undefined
}

/** Answers probes of health, and logs each change of the verdict of readiness. */
export class HealthProbes {
  readonly #options: HealthProbesOptions
  /** The checks that failed when the verdict of readiness was last logged; undefined before the first verdict. */
  #failedChecks: string | undefined
  /** When the verdict of readiness changed last, in milliseconds since 1970. */
  #verdictAt = 0

  constructor(options: HealthProbesOptions) {
    this.#options = options
  }

  /** Answers `/livez`, `/startupz`, `/readyz` or `/ready`, or one check of them. */
  answer(name: string, { query, headers }: HttpRequest, check: string | undefined): HttpResponse {
    if (name === 'livez') return this.#live()
    if (name === 'startupz') return this.#started()
    const forReads = query.get('for') === 'reads'
    const excluded = new Set(query.getAll('exclude').flatMap((names) => names.split(',')))
    const all = this.#checks(forReads).filter((one) => !excluded.has(one.name))
    const checks = check === undefined ? all : all.filter((one) => one.name === check)
    if (check !== undefined && checks.length === 0) return text(404, `There is no check ${check}.\n`)
    const failed = checks.filter(({ isOk }) => !isOk)
    const status = failed.length === 0 ? 200 : 503
    const accept = headers['accept']
    if (name === 'ready' || (typeof accept === 'string' && accept.includes('application/json')))
      return this.#readyJson(status, checks)
    if (!query.has('verbose'))
      return text(status, status === 200 ? 'ok\n' : `${failed.map((one) => one.name).join(' ')}\n`)
    const lines = checks.map(
      ({ name: checkName, isOk, detail }) => `[${isOk ? '+' : '-'}]${checkName} ${detail}\n`,
    )
    return text(status, `${lines.join('')}readyz check ${status === 200 ? 'passed' : 'failed'}\n`)
  }

  /** Logs the verdict of readiness if it has changed since the last call. */
  report(): void {
    const failed = this.#checks().filter(({ isOk }) => !isOk)
    const names = failed.map(({ name }) => name).join(' ')
    if (names === this.#failedChecks) return
    this.#failedChecks = names
    const { logger, clock } = this.#options.platform
    this.#verdictAt = clock.wall()
    if (failed.length === 0) return logger.info({}, 'This server is ready for clients')
    const reasons = failed.map(({ name, detail }) => `${name}: ${detail}`)
    logger.info({ reasons }, 'This server is not ready for clients')
  }

  #checks(forReads = false): readonly HealthCheck[] {
    const { target, recovery } = this.#options
    return readiness(target(), { forReads, recovery: recovery.state }).checks
  }

  #live(): HttpResponse {
    const { settings, platform, target } = this.#options
    const server = target()
    if (server?.hasFailed === true)
      return text(503, 'the state of this server cannot be trusted; its log says why; restart it\n')
    const since = server?.log?.writingSince
    const limitMs = settings.adminLivezStallMs
    const ms = since === undefined ? 0 : platform.clock.monotonic() - since
    return limitMs > 0 && ms > limitMs
      ? text(503, `a write of the log has been in flight for ${seconds(ms)} (limit ${seconds(limitMs)})\n`)
      : text(200, 'ok\n')
  }

  #started(): HttpResponse {
    const { target, recovery } = this.#options
    if (target()?.isListening === true) return text(200, 'ok\n')
    const { phase, percent, etaSeconds } = recovery.state ?? { phase: 'ports' }
    return json(503, { phase, percent: percent ?? null, etaSeconds: etaSeconds ?? null })
  }

  #readyJson(status: number, checks: readonly HealthCheck[]): HttpResponse {
    this.report()
    const target = this.#options.target()
    const role = target?.service?.role.mode ?? target?.role ?? 'starting'
    const zxid = target?.service?.tree.lastZxid
    const hasLeader = target?.service !== undefined && !target.service.isReadOnly
    return json(status, {
      status: status === 200 ? 'ok' : 'unavailable',
      role,
      details: { role, hasLeader },
      checks: checks.map(({ name, isOk, detail }) => ({ name, ok: isOk, detail })),
      zxid: zxid === undefined ? null : `0x${formatZxid(zxid)}`,
      zxidLag: target?.zxidLag ?? null,
      since: new Date(this.#verdictAt).toISOString(),
    })
  }
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
