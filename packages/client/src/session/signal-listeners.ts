import type { PendingRequest } from './pending-request.ts'

/** Requests by the signals of their callers: one listener for each signal, however many requests share it. */
export class SignalListeners {
  #listeners: Map<AbortSignal, { readonly slots: Set<PendingRequest>; readonly stop: () => void }> | undefined
  readonly #onAbort: (slot: PendingRequest, reason: unknown) => void

  constructor(aborted: (slot: PendingRequest, reason: unknown) => void) {
    this.#onAbort = aborted
  }

  add(signal: AbortSignal, slot: PendingRequest): void {
    slot.hasSignalListener = true
    this.#listeners ??= new Map()
    const known = this.#listeners.get(signal)
    if (known !== undefined) return void known.slots.add(slot)
    const slots = new Set([slot])
    const abort = (): void => {
      this.#listeners?.delete(signal)
      for (const one of slots) this.#onAbort(one, signal.reason)
    }
    this.#listeners.set(signal, { slots, stop: () => signal.removeEventListener('abort', abort) })
    signal.addEventListener('abort', abort, { once: true })
  }

  remove(signal: AbortSignal, slot: PendingRequest): void {
    slot.hasSignalListener = false
    const known = this.#listeners?.get(signal)
    if (known === undefined) return
    known.slots.delete(slot)
    if (known.slots.size > 0) return
    known.stop()
    this.#listeners?.delete(signal)
  }
}
