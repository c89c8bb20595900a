import type { Clock, Random } from '@zabra/runtime'
import type { Platform } from '../platform.ts'

const waiting: (() => void)[] = []
let channel: InstanceType<typeof MessageChannel> | undefined

/** Exists in Deno, Bun and Node, not in browsers. */
const { setImmediate } = globalThis as { setImmediate?: (action: () => void) => unknown }

/**
 * Runs an action in a task of its own. A message avoids the delay that browsers add to nested timers. `setImmediate`
 * is preferred where it exists, since an open channel keeps a process alive.
 */
function soon(action: () => void): void {
  if (setImmediate !== undefined) return void setImmediate(action)
  if (channel === undefined) {
    channel = new MessageChannel()
    channel.port1.addEventListener('message', () => waiting.shift()?.())
    channel.port1.start()
  }
  waiting.push(action)
  channel.port2.postMessage(undefined)
}

/** The maximum delay of timers. */
const LONGEST_MS = 2 ** 31 - 1

const clock: Clock = {
  wall: () => Date.now(),
  monotonic: () => performance.now(),
  after(delayMs, _name, action) {
    const timer = setTimeout(action, Math.min(delayMs, LONGEST_MS))
    return () => clearTimeout(timer)
  },
  immediate: soon,
  afterMicrotasks: soon,
}

const random: Random = {
  below(limit) {
    // 53 bits make the bias negligible.
    const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2))
    return Math.floor(((high * 2 ** 21 + (low >>> 11)) / 2 ** 53) * limit)
  },
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
}

export const webPlatform: Platform = { clock, random }
