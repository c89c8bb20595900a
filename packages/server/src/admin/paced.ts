import type { Clock } from '@zabra/runtime'
import { BackupError } from '../backup/index.ts'

/** The longest wait before the rate is looked at again, in milliseconds. */
const WAIT_MS = 1000

export interface Pace {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  /** 0 sets no limit. Looked at once a second, since it may change meanwhile. */
  readonly bytesPerSecond: () => number
  readonly isStopped: () => boolean
}

/** Passes chunks on at most at a rate. Throws a `BackupError` once it is stopped. */
export async function* paced(
  chunks: AsyncIterable<Uint8Array>,
  { clock, bytesPerSecond, isStopped }: Pace,
): AsyncGenerator<Uint8Array> {
  let at = clock.monotonic()
  // Bytes that were passed on before their time.
  let ahead = 0
  for await (const chunk of chunks) {
    if (isStopped()) throw new BackupError('The server stops.')
    yield chunk
    ahead += chunk.length
    for (;;) {
      const [rate, now] = [bytesPerSecond(), clock.monotonic()]
      // What a slow source has not used counts for a second alone, so that a lower rate counts at once.
      ahead = rate === 0 ? 0 : Math.max(-rate, ahead - (rate * (now - at)) / 1000)
      at = now
      if (ahead < 1) break
      const ms = Math.min(WAIT_MS, (ahead / rate) * 1000)
      await new Promise<void>((resolve) => void clock.after(ms, 'rate of a backup', resolve))
      if (isStopped()) throw new BackupError('The server stops.')
    }
  }
}
