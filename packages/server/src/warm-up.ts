import { adler32, crc32, readText } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { PathIndex } from './core/tree/path-index.ts'

/** Bytes in one turn: none of them takes a millisecond before the loops are compiled. */
const STEP_BYTES = 1 << 13
/** As many as V8 takes to compile the loops on a machine that has other work to do. */
const TURNS = 200

/**
 * Runs the loops over bytes and characters in many turns of the event loop, until V8 has compiled them. The first request with a
 * megabyte of data or a name of a million characters would hold the loop for 30 ms otherwise: such loops take ten to thirty times
 * as long before.
 */
export function warmUp(clock: Pick<Clock, 'immediate'>): void {
  const bytes = new Uint8Array(STEP_BYTES).fill(0x6e)
  const malformed = new Uint8Array(STEP_BYTES).map((_, i) => [0xed, 0xa0, 0x80][i % 3]!)
  const paths = new PathIndex(1)
  let turns = TURNS
  // Sums of all 32 bits: code that was compiled for small numbers is thrown away at the first one.
  let [crc, adler] = [0, 1]
  const step = (): void => {
    crc = crc32(bytes, 0, bytes.length, crc)
    adler = adler32(bytes, 0, bytes.length, adler)
    readText(malformed, 0, malformed.length)
    // One of another length each time: the last hash is kept.
    paths.hash('n'.repeat(STEP_BYTES - turns))
    if (--turns > 0) clock.immediate(step)
  }
  clock.immediate(step)
}
