import type { Cancel, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

/** The first byte of the file when one of two servers may go on alone. */
const CAN_LEAD_ALONE = 0x31

/**
 * The oracle of an ensemble of two (`oraclePath`, quorum-protocol 2.5): a file that an external failure detector writes, which says
 * whether this server may go on without the other one. The file is read twice a tick; one that cannot be read says no.
 */
export class Oracle {
  readonly #platform: Platform
  readonly #path: string
  readonly #intervalMs: number
  readonly #changed: (canLeadAlone: boolean) => void
  #canLeadAlone = false
  /** Whether the log already says that the file cannot be read. */
  #isLoggedUnreadable = false
  #isClosed = false
  #cancel: Cancel = () => {}

  /** `changed` is called each time that the answer changes; the first answer is no. */
  constructor(settings: ServerSettings, platform: Platform, changed: (canLeadAlone: boolean) => void) {
    this.#platform = platform
    this.#path = settings.oraclePath!
    this.#intervalMs = settings.tickTimeMs / 2
    this.#changed = changed
  }

  /** The last answer. */
  get canLeadAlone(): boolean {
    return this.#canLeadAlone
  }

  /** Reads the file now, and twice a tick from now on. Resolves after the first read. */
  async start(): Promise<void> {
    const canLeadAlone = await this.#read()
    if (this.#isClosed) return
    if (canLeadAlone !== this.#canLeadAlone) {
      this.#canLeadAlone = canLeadAlone
      const sentence = canLeadAlone
        ? 'The oracle says that this server may go on without the other one'
        : 'The oracle does not let this server go on alone'
      this.#platform.logger.warn({ oraclePath: this.#path }, sentence)
      this.#changed(canLeadAlone)
    }
    this.#cancel = this.#platform.clock.after(this.#intervalMs, 'oracle', () => void this.start())
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
  }

  async #read(): Promise<boolean> {
    try {
      const [first] = await this.#platform.disk.readFile(this.#path)
      this.#isLoggedUnreadable = false
      return first === CAN_LEAD_ALONE
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const sentence = 'The file of the oracle cannot be read; this server does not go on alone'
      if (!this.#isLoggedUnreadable) this.#platform.logger.warn({ oraclePath: this.#path, reason }, sentence)
      this.#isLoggedUnreadable = true
      return false
    }
  }
}
