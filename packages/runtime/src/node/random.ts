import type { Random } from '../random.ts'
import { builtinModule } from './builtin-module.ts'

/** Chance from the operating system. */
export const nodeRandom: Random = {
  below: (limit) => builtinModule('node:crypto').randomInt(limit),
  bytes: (length) => new Uint8Array(builtinModule('node:crypto').randomBytes(length)),
}

/**
 * The same bytes, and numbers that spread load and keep nothing secret: whom to ask first, how long to wait. A process that
 * needs no more than those loads no cryptography.
 */
export const lightRandom: Random = {
  // The platform seeds it from the operating system, so processes that start together draw differently.
  below: (limit) => Math.floor(Math.random() * limit),
  bytes: (length) => nodeRandom.bytes(length),
}
