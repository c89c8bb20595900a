import type { Disk } from '@zabra/runtime'
import { MAX_FEATURE_LEVEL, NOT_FINALIZED, type FeatureState } from '../core/quorum/index.ts'
import { RecoveryError } from './errors.ts'

/** The file with the feature levels, beside the epochs; absent while the ensemble has never finalized one. */
export const FEATURE_FILE = 'zabra.level'
const CONTENTS = /^(\d{1,5})(?: proposed (\d{1,5}))?$/

/** Reads the levels that a member has stored. Rejects with a `RecoveryError` for a file that holds none. */
export async function readFeatureState(disk: Disk, folder: string): Promise<FeatureState> {
  const path = `${folder}/${FEATURE_FILE}`
  if (!(await disk.exists(path))) return NOT_FINALIZED
  const text = new TextDecoder().decode(await disk.readFile(path)).trim()
  const [finalized, proposed] =
    CONTENTS.exec(text)
      ?.slice(1)
      .map((digits) => Number(digits ?? 0)) ?? []
  if (finalized !== undefined && finalized <= MAX_FEATURE_LEVEL && proposed! <= MAX_FEATURE_LEVEL)
    return { finalized, proposed: proposed! }
  throw new RecoveryError(
    `Expected a feature level in ${FEATURE_FILE}, such as 1, got something else`,
    folder,
    `Copy ${FEATURE_FILE} from another member.`,
  )
}

/** Writes the levels of a member; durable when it resolves. */
export function writeFeatureState(disk: Disk, folder: string, state: FeatureState): Promise<void> {
  const { finalized, proposed } = state
  const text = `${finalized}${proposed > finalized ? ` proposed ${proposed}` : ''}\n`
  return disk.replaceFile(`${folder}/${FEATURE_FILE}`, new TextEncoder().encode(text))
}
