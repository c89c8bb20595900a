import { randomBytes, randomInt } from 'node:crypto'
import type { Random } from '../random.ts'

/** Chance from the operating system. */
export const nodeRandom: Random = {
  below: (limit) => randomInt(limit),
  bytes: (length) => new Uint8Array(randomBytes(length)),
}
