import { noop } from './noop.ts'

const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/** The listener of each signal. */
function run(this: AbortSignal): void {
  for (const action of waiting.get(this)!) action()
}

/**
 * Calls a function when a signal aborts, at once if it has. Returns a function that takes it back. All calls share one listener of the
 * signal: callers give one signal to many waits, and Node warns of a memory leak when more than ten listen to it.
 */
export function onAbort(signal: AbortSignal | undefined, action: () => void): () => void {
  if (signal === undefined) return noop
  if (signal.aborted) {
    action()
    return noop
  }
  const actions = waiting.get(signal) ?? new Set()
  waiting.set(signal, actions)
  if (actions.size === 0) signal.addEventListener('abort', run, { once: true })
  actions.add(action)
  return () => {
    // A signal without listeners can be collected.
    if (actions.delete(action) && actions.size === 0) signal.removeEventListener('abort', run)
  }
}
