import { createParser } from '../lock-queue/contenders.ts'

/** Name prefixes between the protection id and the sequence number. */
export const lockPrefixes = { recipe: 'lock-', curator: 'lock-', kazoo: '__lock__' } as const

/** Parses the names of all naming schemes, so that they can share a queue. */
export const parseLock = createParser(['lock-', '__lock__'])
