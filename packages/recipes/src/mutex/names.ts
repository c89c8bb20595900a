import { createParser } from '../lock-queue/contenders.ts'

/** How names of contenders go on after their mark. */
export const lockPrefixes = { recipe: 'lock-', curator: 'lock-', kazoo: '__lock__' } as const

/** Reads the names of all kinds, so that they can share a line. */
export const parseLock = createParser(['lock-', '__lock__'])
