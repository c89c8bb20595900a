import type { Cancel, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

/** The first byte of the file when this server may lead without the other one. */
const CAN_LEAD_ALONE = 0x31

/**
 * Reads the oracle of an ensemble of two (`oraclePath`, quorum-protocol 2.5), twice a tick: a file in which an external failure
 * detector writes whether this server may lead without the other one. If the file cannot be read, or not within a tick, it may not.
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
  /** The read that has no answer yet: further ones would only wait behind it. */
  #reading: Promise<Uint8Array> | undefined

  /** `changed` is called each time that the answer changes; the first answer is false. */
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
        ? 'The oracle lets this server lead without the other one'
        : 'The oracle does not let this server lead without the other one'
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
      const [first] = await this.#readFile()
      this.#isLoggedUnreadable = false
      return first === CAN_LEAD_ALONE
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const sentence =
        'The file of the oracle cannot be read; this server does not lead without the other one'
      if (!this.#isLoggedUnreadable) this.#platform.logger.warn({ oraclePath: this.#path, reason }, sentence)
      this.#isLoggedUnreadable = true
      return false
    }
  }

  /** Resolves to the contents of the file. Rejects where they cannot be read within a tick: its disk may hang. */
  #readFile(): Promise<Uint8Array> {
    const { disk, clock } = this.#platform
    this.#reading ??= disk.readFile(this.#path).finally(() => (this.#reading = undefined))
    const reading = this.#reading
    const withinMs = 2 * this.#intervalMs
    return new Promise((resolve, reject) => {
      const late = (): void =>
        reject(
          new Error(`Expected ${this.#path} to be read within ${withinMs} ms, got no answer of the disk`),
        )
      // After a pause of this process its answer may have come.
      const cancel = clock.after(withinMs, 'answer of the oracle', () => clock.immediate(late))
      void reading.then(resolve, reject).finally(cancel)
    })
  }
}
