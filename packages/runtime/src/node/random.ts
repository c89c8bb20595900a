import type { Random } from '../random.ts'
import { builtinModule } from './builtin-module.ts'

/** Random numbers of the operating system. */
export const nodeRandom: Random = {
  below: (limit) => builtinModule('node:crypto').randomInt(limit),
  bytes: (length) => new Uint8Array(builtinModule('node:crypto').randomBytes(length)),
}

/**
 * As `nodeRandom`, with numbers from `Math.random`, which are not for secrets: the order of servers, delays. A process that uses
 * only those does not load `node:crypto`.
 */
export const lightRandom: Random = {
  // Seeded by the operating system, so processes that start together get different numbers.
  below: (limit) => Math.floor(Math.random() * limit),
  bytes: (length) => nodeRandom.bytes(length),
}
