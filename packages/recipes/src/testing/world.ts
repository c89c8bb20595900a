import type { Client, ConnectOptions, Instrumentation } from '@zabra/client/core'
import type { Clock } from '@zabra/runtime'
import type { ManualWorld } from '../../../client/src/testing/manual-world.ts'

/** A world in which tests control the clock and the network. */
export {
  bytes,
  text,
  TappedConnection,
  ManualWorld,
  type ConnectionFaults,
} from '../../../client/src/testing/manual-world.ts'

/** Counts the requests and notifications of a client. */
export class Meter {
  readonly requests: string[] = []
  readonly events: string[] = []
  readonly phases: string[] = []
  readonly instrumentation: Instrumentation = {
    request: ({ operation }) => void this.requests.push(operation),
    event: ({ type }) => void this.events.push(type),
    recipe: ({ phase }) => void this.phases.push(phase),
  }

  /** Returns and clears the counts. */
  take(): { requests: string[]; events: string[] } {
    return { requests: this.requests.splice(0), events: this.events.splice(0) }
  }
}

/** Creates a client whose requests and notifications are counted. */
export async function metered(
  world: ManualWorld,
  options: Partial<ConnectOptions> = {},
): Promise<{ client: Client; meter: Meter }> {
  const meter = new Meter()
  return { client: await world.client({ ...options, instrumentation: meter.instrumentation }), meter }
}

/** Returns a function that returns whether the promise has settled. */
export function watchSettled(promise: Promise<unknown>): () => boolean {
  let settled = false
  const settle = (): void => void (settled = true)
  promise.then(settle, settle)
  return () => settled
}

/** Returns the error that a promise rejects with. */
export async function rejectionOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('Expected the promise to reject; it resolved')
}

/**
 * Creates the clock of a process that can pause: time goes on, and timers that were due during the pause run right
 * after it.
 */
export function pausableClock(world: ManualWorld): { clock: Clock; standStill(ms: number): void } {
  let offset = 0
  const { clock } = world
  const timers = new Set<{ due: number; run: () => void; cancel: () => void }>()
  const own: Clock = {
    wall: () => clock.wall() + offset,
    monotonic: () => clock.monotonic() + offset,
    after: (ms, name, action) => {
      const run = (): void => {
        timers.delete(timer)
        action()
      }
      const timer = { due: own.monotonic() + ms, run, cancel: clock.after(ms, name, run) }
      timers.add(timer)
      return () => {
        timers.delete(timer)
        timer.cancel()
      }
    },
    immediate: (action) => clock.immediate(action),
    afterMicrotasks: (action) => clock.afterMicrotasks(action),
  }
  const standStill = (ms: number): void => {
    offset += ms
    for (const timer of [...timers].toSorted((a, b) => a.due - b.due)) {
      timer.cancel()
      timer.cancel = clock.after(
        Math.max(0, timer.due - own.monotonic()),
        'timer that was held up',
        timer.run,
      )
    }
  }
  return { clock: own, standStill }
}

/** Returns a function that counts the current listeners of a signal. */
export function countListeners(signal: AbortSignal): () => number {
  /** Listeners, and whether the first event removes them. */
  const live = new Map<unknown, boolean>()
  const add = signal.addEventListener.bind(signal)
  const remove = signal.removeEventListener.bind(signal)
  signal.addEventListener = (type: string, listener: unknown, options?: unknown) => {
    live.set(listener, (options as { readonly once?: boolean } | undefined)?.once === true)
    add(type, listener as never, options as never)
  }
  signal.removeEventListener = (type: string, listener: unknown, options?: unknown) => {
    live.delete(listener)
    remove(type, listener as never, options as never)
  }
  return () => [...live.values()].filter((isOnce) => !isOnce || !signal.aborted).length
}
