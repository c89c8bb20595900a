import type { Disk, Random } from '@zabra/runtime'
import {
  formatClusterId,
  MAX_GENERATION,
  ORIGINAL_CLUSTER,
  parseClusterId,
  type ClusterId,
} from '../core/quorum/index.ts'
import { RecoveryError } from './errors.ts'

/** The file with the id of the ensemble, beside the epochs; absent while the ensemble was never recovered. */
export const CLUSTER_FILE = 'zabra.cluster'

/** Reads the id of the ensemble. Rejects with a `RecoveryError` for a file that holds none. */
export async function readClusterId(disk: Disk, folder: string): Promise<ClusterId> {
  const path = `${folder}/${CLUSTER_FILE}`
  if (!(await disk.exists(path))) return ORIGINAL_CLUSTER
  const id = parseClusterId(new TextDecoder().decode(await disk.readFile(path)).trim())
  if (id !== undefined) return id
  throw new RecoveryError(
    `Expected the id of an ensemble in ${CLUSTER_FILE}, such as 1- and 32 hexadecimal digits, got something else`,
    folder,
    `Copy ${CLUSTER_FILE} from another member.`,
  )
}

/** Writes the id of the ensemble; durable when it resolves. */
export const writeClusterId = (disk: Disk, folder: string, id: ClusterId): Promise<void> =>
  disk.replaceFile(`${folder}/${CLUSTER_FILE}`, new TextEncoder().encode(`${formatClusterId(id)}\n`))

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
  await writeClusterId(disk, folder, {
    generation: generation + 1,
    bytes: random.bytes(ORIGINAL_CLUSTER.bytes.length),
  })
}
