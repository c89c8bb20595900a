import { concatBytes, ProtocolError } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'

const longForm = process.env['ZABRA_FUZZ_INPUTS']
/** Number of inputs of each decoder. The long form has 1,000,000. */
export const FUZZ_INPUTS = Number(longForm ?? 3000)

/** The most processor time of one input in milliseconds. A request that needs more would hold the event loop. */
const MAX_CPU_MS = 500
/** The most memory that may be held after all inputs, above that after the first half, in bytes. */
const MAX_GROWTH = 8 << 20

/** A decoder of bytes from outside, with valid inputs of it. */
export interface FuzzedDecoder {
  readonly samples: readonly Uint8Array[]
  readonly decode: (bytes: Uint8Array, random: SeededRandom) => unknown
  /** Whether an error is a proper refusal; by default a `ProtocolError` is. */
  readonly isRefusal?: (error: unknown) => boolean
  /** The share of `FUZZ_INPUTS` that a slow decoder gets in the short form; 1 by default. In the long form, each gets all. */
  readonly share?: number
}

/**
 * Passes damaged samples to a decoder. Rejects, with the input in hexadecimal, when the decoder throws anything but a refusal, takes
 * too much processor time, or when memory grows.
 */
export async function fuzz({
  samples,
  decode,
  isRefusal = (error) => error instanceof ProtocolError,
  share = 1,
}: FuzzedDecoder): Promise<void> {
  for (const sample of samples) await decode(sample.slice(), new SeededRandom(1))
  const random = new SeededRandom(21)
  const inputs = Math.ceil(FUZZ_INPUTS * (longForm === undefined ? share : 1))
  let [heldAtHalf, longestMicros] = [0, 0]
  for (let i = 0; i < inputs; i++) {
    if (i === inputs >> 1) heldAtHalf = await heldBytes()
    const input = damaged(random, samples)
    const shown = (): string => `input ${i}: ${Buffer.from(input.subarray(0, 2000)).toString('hex')}`
    const began = process.cpuUsage()
    try {
      const decoded = decode(input.slice(), random)
      if (decoded instanceof Promise) await decoded
    } catch (error) {
      if (!isRefusal(error)) throw new Error(`${shown()}: ${String(error)}`, { cause: error })
    }
    const { user, system } = process.cpuUsage(began)
    longestMicros = Math.max(longestMicros, user + system)
    if (user + system > MAX_CPU_MS * 1000)
      throw new Error(`${shown()} took ${(user + system) / 1000} ms of processor time`)
  }
  let growth = Infinity
  // What a finalizer held is freed in a later collection.
  for (let tries = 0; tries < 4 && growth >= MAX_GROWTH; tries++) growth = (await heldBytes()) - heldAtHalf
  if (longForm !== undefined)
    console.log(
      `${expect.getState().currentTestName}: ${inputs} inputs, ${(heldAtHalf / 2 ** 20).toFixed(1)} MiB held after half of them, ` +
        `${(growth / 2 ** 20).toFixed(2)} MiB more at the end, ${(longestMicros / 1000).toFixed(0)} ms for the slowest`,
    )
  expect(growth).toBeLessThan(MAX_GROWTH)
}

/**
 * Returns the bytes that are held after a garbage collection, which takes longer than thousands of inputs. Streams that are closed let go
 * of theirs in later turns.
 */
async function heldBytes(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve))
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Numbers at which lengths, counts and ids change their meaning. */
const BOUNDARIES = [0, 1, -1, -2, 127, 255, 65_535, 65_536, 1 << 20, 0x7fff_fffe, 0x7fff_ffff, -0x8000_0000]

/** Returns a sample with one to four damaged places, or rarely random bytes. */
export function damaged(random: SeededRandom, samples: readonly Uint8Array[]): Uint8Array {
  const pick = <T>(all: readonly T[]): T => all[random.below(all.length)]!
  if (samples.length === 0 || random.below(50) === 0) return random.bytes(random.below(80))
  let bytes: Uint8Array = pick(samples).slice()
  for (let times = 1 + random.below(4); times > 0; times--) {
    const at = random.below(bytes.length + 1)
    const to = Math.min(bytes.length, at + random.below(24))
    switch (random.below(8)) {
      case 0:
        if (at < bytes.length) bytes[at]! ^= 1 << random.below(8)
        break
      case 1:
        if (at < bytes.length) bytes[at] = random.below(256)
        break
      case 2:
        bytes = bytes.slice(0, at)
        break
      case 3:
        bytes = concatBytes([bytes.subarray(0, at), random.bytes(random.below(20)), bytes.subarray(at)])
        break
      case 4:
        bytes = concatBytes([bytes.subarray(0, at), bytes.subarray(to)])
        break
      case 5:
        bytes = concatBytes([bytes.subarray(0, to), bytes.subarray(at)])
        break
      case 6:
        bytes = concatBytes([bytes.subarray(0, at), pick(samples).subarray(random.below(16))])
        break
      default:
        if (at + 4 <= bytes.length)
          new DataView(bytes.buffer, bytes.byteOffset).setInt32(at, pick(BOUNDARIES))
    }
  }
  return bytes
}

/** Splits bytes into chunks at random places, as a network does. */
export function* chunksOf(random: SeededRandom, bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + 1 + random.below(random.below(4) === 0 ? 4 : 200))
    yield bytes.slice(at, end)
    at = end
  }
}
