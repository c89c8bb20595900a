import type { Cancel, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

/** The first byte of the file when one of two servers may go on alone. */
const GO_ON = 0x31

/**
 * The oracle of an ensemble of two (`oraclePath`, quorum-protocol 2.5): a file that an external failure detector writes, which says
 * whether this server may go on without the other one. The file is read twice a tick; one that cannot be read says no.
 */
export class Oracle {
  readonly #platform: Platform
  readonly #path: string
  readonly #intervalMs: number
  readonly #changed: (goOn: boolean) => void
  #mayContinueAlone = false
  /** Whether the log already says that the file cannot be read. */
  #isLoggedUnreadable = false
  #isClosed = false
  #cancel: Cancel = () => {}

  /** `changed` is called each time that the answer changes; the first answer is no. */
  constructor(settings: ServerSettings, platform: Platform, changed: (goOn: boolean) => void) {
    this.#platform = platform
    this.#path = settings.oraclePath!
    this.#intervalMs = settings.tickTimeMs / 2
    this.#changed = changed
  }

  /** The last answer. */
  get mayContinueAlone(): boolean {
    return this.#mayContinueAlone
  }

  /** Reads the file now, and twice a tick from now on. Resolves after the first read. */
  async start(): Promise<void> {
    const goOn = await this.#read()
    if (this.#isClosed) return
    if (goOn !== this.#mayContinueAlone) {
      this.#mayContinueAlone = goOn
      const sentence = goOn
        ? 'The oracle says that this server may go on without the other one'
        : 'The oracle does not let this server go on alone'
      this.#platform.logger.warn({ oraclePath: this.#path }, sentence)
      this.#changed(goOn)
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
      return first === GO_ON
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const sentence = 'The file of the oracle cannot be read; this server does not go on alone'
      if (!this.#isLoggedUnreadable) this.#platform.logger.warn({ oraclePath: this.#path, reason }, sentence)
      this.#isLoggedUnreadable = true
      return false
    }
  }
}
