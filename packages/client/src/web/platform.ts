import type { Clock, Random } from '@zabra/runtime'
import type { Platform } from '../types.ts'

const waiting: (() => void)[] = []
let channel: InstanceType<typeof MessageChannel> | undefined

/** What Deno, Bun and Node have, and browsers do not. */
const { setImmediate } = globalThis as { setImmediate?: (action: () => void) => unknown }

/**
 * A message is a task of its own, without the pause that browsers put before nested timers. Where there is something for
 * the purpose it is used, since a channel that is open keeps a process running.
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

/** The longest delay that timers know. */
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
    // 53 bits leave no bias that anybody could see.
    const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2))
    return Math.floor(((high * 2 ** 21 + (low >>> 11)) / 2 ** 53) * limit)
  },
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
}

export const webPlatform: Platform = { clock, random }
