import { parserOf } from '../line/contenders.ts'

/** How names of contenders go on after their mark. */
export const lockWords = { recipe: 'lock-', curator: 'lock-', kazoo: '__lock__' } as const

/** Reads the names of all kinds, so that they can share a line. */
export const parseLock = parserOf(['lock-', '__lock__'])
