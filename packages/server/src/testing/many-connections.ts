import type { ManualClock } from '@zabra/runtime'
import type { ClientService } from '../connections/client-service.ts'
import type { Server } from '../server-types.ts'

/** Returns what serves the clients of a server in its present role. */
export const serviceOf = (server: Server): ClientService =>
  (server as unknown as { service: ClientService }).service

/** Returns a function that returns by how much a figure fell at most in one turn of the event loop. */
export function watchFalls(clock: ManualClock, figure: () => number): () => number {
  const [immediate, after] = [clock.immediate.bind(clock), clock.after.bind(clock)]
  let last = figure()
  let most = 0
  const look = (): void => {
    const now = figure()
    most = Math.max(most, last - now)
    last = now
  }
  // What falls between two actions is the work of promises.
  const watched =
    (action: () => void): (() => void) =>
    () => {
      look()
      action()
      look()
    }
  clock.immediate = (action) => immediate(watched(action))
  clock.after = (ms, name, action) => after(ms, name, watched(action))
  return () => (look(), most)
}

/** Lets promises resolve before each turn of the event loop: writes to the disk end while other work goes on. */
export function interleavePromises(clock: ManualClock): void {
  const immediate = clock.immediate.bind(clock)
  clock.immediate = (action) => {
    let settled = Promise.resolve()
    for (let jobs = 0; jobs < 20; jobs++) settled = settled.then(() => {})
    void settled.then(() => immediate(action))
  }
}

/** Returns a function that lets so many milliseconds pass within a turn. */
export function spendTime(clock: ManualClock): (ms: number) => void {
  const monotonic = clock.monotonic.bind(clock)
  let spent = 0
  clock.monotonic = () => monotonic() + spent
  return (ms) => void (spent += ms)
}
