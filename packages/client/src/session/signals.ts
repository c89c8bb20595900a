import type { Slot } from './slot.ts'

/** Requests by the signals of their callers: one listener for each signal, however many requests share it. */
export class Signals {
  #listeners: Map<AbortSignal, { readonly slots: Set<Slot>; readonly stop: () => void }> | undefined
  readonly #aborted: (slot: Slot, reason: unknown) => void

  constructor(aborted: (slot: Slot, reason: unknown) => void) {
    this.#aborted = aborted
  }

  add(signal: AbortSignal, slot: Slot): void {
    slot.signalled = true
    this.#listeners ??= new Map()
    const known = this.#listeners.get(signal)
    if (known !== undefined) return void known.slots.add(slot)
    const slots = new Set([slot])
    const abort = (): void => {
      this.#listeners?.delete(signal)
      for (const one of slots) this.#aborted(one, signal.reason)
    }
    this.#listeners.set(signal, { slots, stop: () => signal.removeEventListener('abort', abort) })
    signal.addEventListener('abort', abort, { once: true })
  }

  remove(signal: AbortSignal, slot: Slot): void {
    slot.signalled = false
    const known = this.#listeners?.get(signal)
    if (known === undefined) return
    known.slots.delete(slot)
    if (known.slots.size > 0) return
    known.stop()
    this.#listeners?.delete(signal)
  }
}
