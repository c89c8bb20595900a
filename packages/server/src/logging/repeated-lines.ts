import type { Cancel, Clock } from '@zabra/runtime'

/** The time in which lines about the same thing are counted, in milliseconds. */
const WINDOW_MS = 60_000
/** Lines about the same thing that are written in this time. */
const WRITTEN = 10
/** Things that are counted apart; lines about others are counted as one thing for each event. */
const MAX_KEYS = 1000

interface Window {
  readonly endsAt: number
  lines: number
  /** What the lines that were left out stand for. */
  omitted: number
  /** Writes the last line that was left out, with the number of them. */
  writeRest: ((times: number) => void) | undefined
  cancel: Cancel | undefined
}

/** Folds repeats: of more than ten lines in a minute with the same event and key, the rest is one line with a count. */
export class RepeatedLines {
  readonly #clock: Pick<Clock, 'after' | 'monotonic'>
  readonly #windows = new Map<string, Window>()

  constructor(clock: Pick<Clock, 'after' | 'monotonic'>) {
    this.#clock = clock
  }

  /**
   * Counts a line about an event and a thing, which stands for `times` of them. Returns whether it is written now; else `writeRest` of
   * the last such line is called at the end of the minute with the number of those that were left out.
   */
  admits(event: string, key: string, writeRest: (times: number) => void, times = 1): boolean {
    const window = this.#windowOf(event, key)
    if (++window.lines <= WRITTEN) return true
    window.omitted += times
    window.writeRest = writeRest
    window.cancel ??= this.#clock.after(
      window.endsAt - this.#clock.monotonic(),
      'repeated lines of the log',
      () => {
        this.#windows.delete(`${event} ${key}`)
        this.#end(window)
      },
    )
    return false
  }

  /** Writes what was left out. */
  close(): void {
    for (const window of this.#windows.values()) {
      window.cancel?.()
      this.#end(window)
    }
    this.#windows.clear()
  }

  #end({ omitted, writeRest }: Window): void {
    writeRest?.(omitted)
  }

  #windowOf(event: string, key: string): Window {
    const now = this.#clock.monotonic()
    const name = `${event} ${key}`
    const known = this.#windows.get(name)
    // A window with lines that were left out ends by its timer.
    if (known !== undefined && (known.writeRest !== undefined || now < known.endsAt)) return known
    this.#windows.delete(name)
    if (this.#windows.size >= MAX_KEYS) this.#removeEnded(now)
    if (this.#windows.size >= MAX_KEYS && key !== '') return this.#windowOf(event, '')
    const window: Window = {
      endsAt: now + WINDOW_MS,
      lines: 0,
      omitted: 0,
      writeRest: undefined,
      cancel: undefined,
    }
    this.#windows.set(name, window)
    return window
  }

  /** Removes windows that are over. Windows stand in the order in which they begin. */
  #removeEnded(now: number): void {
    for (const [name, { endsAt, writeRest }] of this.#windows) {
      if (now < endsAt) return
      if (writeRest === undefined) this.#windows.delete(name)
    }
  }
}
