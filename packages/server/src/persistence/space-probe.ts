import type { Clock, Disk, Logger } from '@zabra/runtime'

const INTERVAL_MS = 1000
const PROBE_BYTES = 1 << 20
const NAME = 'space-probe.tmp'

export interface SpaceProbeOptions {
  readonly disk: Disk
  readonly clock: Clock
  readonly logger: Logger
  readonly folder: string
}

/** Writes 1 MiB to the folder once a second until that succeeds, then calls `onSpace`. Stops once `isWaiting` returns false. */
export function waitForSpace(
  options: SpaceProbeOptions,
  isWaiting: () => boolean,
  onSpace: () => void,
): void {
  options.clock.after(INTERVAL_MS, 'log space probe', () => {
    if (isWaiting()) void probe(options, isWaiting, onSpace)
  })
}

async function probe(
  options: SpaceProbeOptions,
  isWaiting: () => boolean,
  onSpace: () => void,
): Promise<void> {
  const { disk, folder, logger } = options
  try {
    await writeProbe(disk, `${folder}/${NAME}`)
  } catch (error) {
    logger.debug({ folder, error: String(error) }, 'The disk of the log is still full')
    return waitForSpace(options, isWaiting, onSpace)
  }
  if (isWaiting()) onSpace()
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
