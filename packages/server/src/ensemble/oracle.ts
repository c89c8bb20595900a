import type { Cancel, Platform } from '@zabra/runtime'
import type { ServerSettings } from '../settings/index.ts'

/** What the file begins with when one of two servers may go on alone. */
const GO_ON = 0x31

/**
 * The word of somebody outside of an ensemble of two, from a file (`oraclePath`): whether this server may go on without the
 * other one. The file is read again and again; one that cannot be read says no.
 */
export class Oracle {
  readonly #platform: Platform
  readonly #path: string
  readonly #everyMs: number
  readonly #changed: (goOn: boolean) => void
  #goOn = false
  #complained = false
  #closed = false
  #cancel: Cancel = () => {}

  /** `changed` is called each time that the answer becomes another one; at first it is no. */
  constructor(settings: ServerSettings, platform: Platform, changed: (goOn: boolean) => void) {
    this.#platform = platform
    this.#path = settings.oraclePath!
    this.#everyMs = settings.tickTimeMs / 2
    this.#changed = changed
  }

  /** What it said last. */
  get mayContinueAlone(): boolean {
    return this.#goOn
  }

  /** Reads the file now, and from now on twice a tick. */
  async start(): Promise<void> {
    const goOn = await this.#read()
    if (this.#closed) return
    if (goOn !== this.#goOn) {
      this.#goOn = goOn
      const sentence = goOn
        ? 'The oracle says that this server may go on without the other one'
        : 'The oracle does not let this server go on alone'
      this.#platform.logger.warn({ oraclePath: this.#path }, sentence)
      this.#changed(goOn)
    }
    this.#cancel = this.#platform.clock.after(this.#everyMs, 'oracle', () => void this.start())
  }

  close(): void {
    this.#closed = true
    this.#cancel()
  }

  async #read(): Promise<boolean> {
    try {
      const [first] = await this.#platform.disk.readFile(this.#path)
      this.#complained = false
      return first === GO_ON
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      const sentence = 'The file of the oracle cannot be read; this server does not go on alone'
      if (!this.#complained) this.#platform.logger.warn({ oraclePath: this.#path, reason }, sentence)
      this.#complained = true
      return false
    }
  }
}
