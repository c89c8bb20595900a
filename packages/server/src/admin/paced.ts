import type { Clock } from '@zabra/runtime'
import { BackupError } from '../backup/index.ts'

export interface Pace {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
  /** 0 sets no limit. */
  readonly bytesPerSecond: number
  readonly isStopped: () => boolean
}

/** Passes chunks on at most at a rate. Throws a `BackupError` once it is stopped. */
export async function* paced(
  chunks: AsyncIterable<Uint8Array>,
  { clock, bytesPerSecond, isStopped }: Pace,
): AsyncGenerator<Uint8Array> {
  const startedAt = clock.monotonic()
  let bytes = 0
  for await (const chunk of chunks) {
    if (isStopped()) throw new BackupError('The server stops.')
    yield chunk
    if (bytesPerSecond === 0) continue
    bytes += chunk.length
    const aheadMs = (bytes / bytesPerSecond) * 1000 - (clock.monotonic() - startedAt)
    if (aheadMs > 0)
      await new Promise<void>((resolve) => void clock.after(aheadMs, 'rate of a backup', resolve))
  }
}
