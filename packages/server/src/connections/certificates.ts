import type { Cancel, CertificateStore, OwnCertificate, Platform, TlsNetwork } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

/** Milliseconds between two checks of the certificate files for changes. */
const RELOAD_INTERVAL_MS = 10_000
const DAY_MS = 86_400_000
/** Time before the end of a certificate from which on a line says so each day. */
const ENDS_SOON_MS = 14 * DAY_MS

/** Returns a store of one kind of ports, by the begin of the names of its settings; undefined without a file. */
export function storeOf(
  settings: ServerSettings,
  store: `${'ssl' | 'quorum' | 'admin'}${'KeyStore' | 'TrustStore'}`,
): CertificateStore | undefined {
  const path = settings[`${store}Location`]
  if (path === undefined) return undefined
  return {
    path,
    type: settings[`${store}Type`],
    password: settings[`${store}Password`],
    passwordPath: settings[`${store}PasswordPath`],
  }
}

/** Reads the certificate files of a network again while it runs, on a schedule and on request, and logs the result. */
export class CertificateReload {
  readonly #tls: TlsNetwork
  readonly #platform: Pick<Platform, 'clock' | 'logger'>
  /** Which certificates they are, for log lines: `The certificates`, for example. */
  readonly #subject: string
  /** The last error of a file, which is logged once. */
  #lastError = ''
  /** When a line has last said that the certificate ends soon, on the monotonic clock. */
  #warnedAt = -Infinity
  #cancel: Cancel = () => {}
  #isStopped = false

  constructor(tls: TlsNetwork, platform: Pick<Platform, 'clock' | 'logger'>, subject: string) {
    this.#tls = tls
    this.#platform = platform
    this.#subject = subject
  }

  /** The own certificate; undefined where there is none. */
  get certificate(): OwnCertificate | undefined {
    return this.#tls.certificate
  }

  /** Checks the end of the certificate, and the files if `readsFiles`, every 10 s until `stop`. */
  start(readsFiles: boolean): void {
    if (this.#isStopped) return
    this.#cancel = this.#platform.clock.after(RELOAD_INTERVAL_MS, 'change of certificates', () => {
      const read = readsFiles ? this.#run(false) : Promise.resolve()
      void read.then(() => {
        this.#warnOfEnd()
        this.start(readsFiles)
      })
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  /** Reads the files now, and logs the result whatever it is. */
  async reload(): Promise<void> {
    this.#lastError = ''
    await this.#run(true)
  }

  #warnOfEnd(): void {
    const { clock, logger } = this.#platform
    const now = clock.monotonic()
    const { validUntil = Infinity } = this.certificate ?? {}
    if (validUntil - clock.wall() >= ENDS_SOON_MS || now - this.#warnedAt < DAY_MS) return
    this.#warnedAt = now
    const end = new Date(validUntil).toISOString()
    logger.warn({ id: 'tls.ends', end }, `${this.#subject} end soon`)
  }

  async #run(isRequested: boolean): Promise<void> {
    const { logger } = this.#platform
    try {
      if (await this.#tls.reload())
        logger.info({ id: 'tls.reloaded' }, `${this.#subject} have changed; new connections use them`)
      else if (isRequested) logger.info({ id: 'tls.unchanged' }, `${this.#subject} have not changed`)
      this.#lastError = ''
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      if (reason !== this.#lastError)
        logger.error(
          { id: 'tls.not-reloaded', reason },
          `${this.#subject} have changed and cannot be used; the old ones stay in use`,
        )
      this.#lastError = reason
    }
  }
}
