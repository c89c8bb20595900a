import type { Disk, Random } from '@zabra/runtime'
import {
  CLUSTER_ID_BYTES,
  formatClusterId,
  MAX_GENERATION,
  NO_CLUSTER,
  parseClusterId,
  type ClusterId,
} from '../core/quorum/index.ts'
import { RecoveryError } from './errors.ts'

/** The file with the id of the ensemble, beside the epochs; absent while the ensemble has none. */
export const CLUSTER_FILE = 'zabra.cluster'
/** Follows an id of which no quorum is known to have it. */
const PROPOSED = ' proposed'

/** Reads the id of the ensemble. Rejects with a `RecoveryError` for a file that holds none. */
export async function readClusterId(disk: Disk, folder: string): Promise<ClusterId> {
  const path = `${folder}/${CLUSTER_FILE}`
  if (!(await disk.exists(path))) return NO_CLUSTER
  const text = new TextDecoder().decode(await disk.readFile(path)).trim()
  const isProposed = text.endsWith(PROPOSED)
  const id = parseClusterId(isProposed ? text.slice(0, -PROPOSED.length) : text)
  if (id !== undefined) return { ...id, isProposed }
  throw new RecoveryError(
    `Expected the id of an ensemble in ${CLUSTER_FILE}, such as 0- and 32 hexadecimal digits, got something else`,
    folder,
    `Copy ${CLUSTER_FILE} from another member.`,
  )
}

/** Writes the id of the ensemble; durable when it resolves. */
export function writeClusterId(disk: Disk, folder: string, id: ClusterId): Promise<void> {
  const text = `${formatClusterId(id)}${id.isProposed ? PROPOSED : ''}\n`
  return disk.replaceFile(`${folder}/${CLUSTER_FILE}`, new TextEncoder().encode(text))
}

/** Draws an id for an ensemble that was recovered `generation` times. */
export const drawClusterId = (random: Random, generation: number, isProposed: boolean): ClusterId => ({
  generation,
  bytes: random.bytes(CLUSTER_ID_BYTES),
  isProposed,
})

/**
 * Makes the data of a stopped member those of a new ensemble, whose members keep out those of the one before. Rejects with a
 * `RecoveryError` where no generation is left.
 */
export async function beginNextCluster(disk: Disk, random: Random, folder: string): Promise<void> {
  const { generation } = await readClusterId(disk, folder)
  if (generation >= MAX_GENERATION)
    throw new RecoveryError(
      `Expected at most ${MAX_GENERATION} recoveries of an ensemble, got one more`,
      folder,
      'Restore a backup into new data folders instead.',
    )
  await writeClusterId(disk, folder, drawClusterId(random, generation + 1, false))
}
