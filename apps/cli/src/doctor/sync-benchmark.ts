import type { Disk } from '@zabra/runtime'
import { finding, type Finding } from './finding.ts'

/** The file that is written and removed, and its greatest length. */
export const BENCHMARK_FILE = 'zabra-doctor.tmp'
const MAX_FILE_BYTES = 16 << 20
/** Bytes of each write: a small batch of transactions. */
const WRITE_BYTES = 4096
/** The most writes, also on a disk that takes no time. */
const MAX_WRITES = 200_000
/** The time of the slowest hundredth of syncs from which on it is reported, in milliseconds. */
const SLOW_MS = 20

/** How long syncs of small writes took, in milliseconds. */
export interface SyncTimes {
  readonly count: number
  readonly p50: number
  readonly p99: number
  /** Syncs a second, one after the other. */
  readonly perSecond: number
}

export interface SyncBenchmark {
  readonly disk: Disk
  readonly folder: string
  readonly seconds: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  readonly signal?: AbortSignal
}

/** Writes to a file of its own for some seconds, each write durable before the next, and removes the file, also when it is aborted. */
export async function measureSyncs({
  disk,
  folder,
  seconds,
  now,
  signal,
}: SyncBenchmark): Promise<SyncTimes> {
  const path = `${folder}/${BENCHMARK_FILE}`
  // One that was killed has left it.
  if (await disk.exists(path)) await disk.remove(path)
  const writer = await disk.openWrite(path, { create: true, durable: true })
  const times: number[] = []
  const begun = now()
  let last = begun
  try {
    const bytes = new Uint8Array(WRITE_BYTES).fill(0x5a)
    while (last - begun < seconds * 1000 && times.length < MAX_WRITES) {
      signal?.throwIfAborted()
      await writer.write(bytes, (times.length * WRITE_BYTES) % MAX_FILE_BYTES)
      const time = now()
      times.push(time - last)
      last = time
    }
  } finally {
    await writer.close()
    await disk.remove(path)
  }
  times.sort((a, b) => a - b)
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0
  return {
    count: times.length,
    p50: at(0.5),
    p99: at(0.99),
    perSecond: (times.length * 1000) / Math.max(last - begun, 1e-3),
  }
}

/** Tells how fast the disk of a folder makes writes durable, and whether that is slow. */
export function* checkSyncs(folder: string, { count, p50, p99, perSecond }: SyncTimes): Generator<Finding> {
  const figures = `${count} syncs of 4 KiB: half of them within ${rounded(p50)} ms, 99 % within ${rounded(p99)} ms`
  if (p99 > SLOW_MS)
    yield finding(
      'slow-disk',
      folder,
      `${figures}; above ${SLOW_MS} ms writes wait, and sessions may expire`,
      'Use a local SSD that keeps writes without power, and leave it to the log (dataLogDir).',
    )
  yield finding(
    'sync-rate',
    folder,
    `${figures}; so ${Math.floor(perSecond)} writes a second one after the other, and more where clients write at the same time, as they share a sync`,
    'Nothing is to be done.',
  )
}

const rounded = (ms: number): string => Number(ms.toPrecision(2)).toString()
