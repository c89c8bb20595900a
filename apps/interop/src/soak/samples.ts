import { fourLetterWord } from '../harness/client.ts'
import type { Ensemble } from '../ensemble/ensemble.ts'

/** What a member used and how long it held its event loop, since the sample before. */
export interface Sample {
  readonly id: number
  /** Bytes in use after collections, as V8 counts them. */
  readonly heapBytes: number
  readonly residentBytes: number
  /** The longest hold of the event loop, in milliseconds. */
  readonly holdMs: number
  /** The longest garbage collection, in milliseconds. */
  readonly collectionMs: number
}

/** Reads the figures of the members that run and resets their holds. */
export async function sample(ensemble: Ensemble): Promise<Sample[]> {
  return Promise.all(
    ensemble.running.map(async (id) => {
      const member = ensemble.member(id)
      const text = await fourLetterWord(member.port, 'mntr')
      await fourLetterWord(member.port, 'srst')
      const figure = (name: string): number =>
        Number(new RegExp(`^zk_${name}\\s+([\\d.]+)$`, 'm').exec(text)?.[1] ?? NaN)
      return {
        id,
        heapBytes: figure('heap_used_bytes'),
        residentBytes: member.residentBytes,
        holdMs: figure('max_event_loop_hold_ms'),
        collectionMs: figure('max_gc_pause_ms'),
      }
    }),
  )
}

const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
const largest = (numbers: readonly number[]): number => Math.max(...numbers)

/** Returns the figures of some samples as one line. */
export const describeSamples = (samples: readonly Sample[]): string =>
  `heap ${mib(largest(samples.map(({ heapBytes }) => heapBytes)))}, resident ${mib(largest(samples.map(({ residentBytes }) => residentBytes)))}, longest hold ${largest(samples.map(({ holdMs }) => holdMs)).toFixed(0)} ms, longest collection ${largest(samples.map(({ collectionMs }) => collectionMs)).toFixed(0)} ms`
