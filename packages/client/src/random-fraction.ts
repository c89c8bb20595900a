import type { Random } from '@zabra/runtime'

/** Returns a random number from 0 (inclusive) to 1 (exclusive). */
export const randomFraction = (random: Random): number => random.below(0x1_0000_0000) / 0x1_0000_0000
