import type { Cancel, Clock, Disk, Logger } from '@zabra/runtime'

const INTERVAL_MS = 1000
const PROBE_BYTES = 1 << 20
const NAME = 'space-probe.tmp'

export interface SpaceProbeOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly logger: Logger
  readonly folder: string
}

/**
 * Writes 1 MiB to the folder once a second until that succeeds, then calls `onSpace`. Returns a function that ends this, and resolves
 * when no write is in flight: the next recovery finds no file of it.
 */
export function waitForSpace(options: SpaceProbeOptions, onSpace: () => void): () => Promise<void> {
  const { disk, clock, folder, logger } = options
  let hasEnded = false
  let probing = Promise.resolve()
  let cancel: Cancel
  const schedule = (): void => {
    cancel = clock.after(INTERVAL_MS, 'log space probe', () => {
      probing = probe()
    })
  }
  const probe = async (): Promise<void> => {
    try {
      await writeProbe(disk, `${folder}/${NAME}`)
    } catch (error) {
      logger.debug({ folder, error: String(error) }, 'The disk of the log is still full')
      if (!hasEnded) schedule()
      return
    }
    if (!hasEnded) onSpace()
  }
  schedule()
  return () => {
    hasEnded = true
    cancel()
    return probing
  }
}

async function writeProbe(disk: Disk, path: string): Promise<void> {
  if (await disk.exists(path)) await disk.remove(path)
  const writer = await disk.openWrite(path, { create: true, durable: true })
  try {
    await writer.write(new Uint8Array(PROBE_BYTES), 0)
  } finally {
    await writer.close()
    await disk.remove(path)
  }
}
