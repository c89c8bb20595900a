import type { Host } from '@zabra/testing'
import { DATA_DIR } from './settings.ts'

const LEVEL_FILE = `${DATA_DIR}/version-2/zabra.level`

/** The feature levels on a disk (quorum-protocol 18.9). Parsed independently of the server, so as not to share its defects. */
export interface Levels {
  readonly finalized: number
  /** 0 for none. */
  readonly proposed: number
}

const NO_LEVELS: Levels = { finalized: 0, proposed: 0 }

/** Returns the level below which no release may serve a folder. */
export const required = ({ finalized, proposed }: Levels): number => Math.max(finalized, proposed)

export const areSame = (a: Levels, b: Levels): boolean =>
  a.finalized === b.finalized && a.proposed === b.proposed

/** Returns the levels that would certainly survive a power cut. */
export const durableLevels = ({ disk }: Host): Levels => parse(disk.durable(LEVEL_FILE)?.durableBytes)

/** Returns the levels that a process would read now. */
export const visibleLevels = ({ disk }: Host): Levels => parse(disk.file(LEVEL_FILE)?.bytes)

function parse(bytes: Uint8Array | undefined): Levels {
  if (bytes === undefined) return NO_LEVELS
  const [finalized, , proposed] = new TextDecoder().decode(bytes).trim().split(' ')
  return { finalized: Number(finalized), proposed: Number(proposed ?? 0) }
}
