import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { BUSY_FILE, longestTurn, parseTurns, type Turn } from 'zabra-bench/busy'
import type { Ensemble } from '../ensemble/ensemble.ts'
import { fourLetterWord } from '../harness/client.ts'

/** What a member uses, and its long turns of the event loop since the sample before. */
export interface Sample {
  readonly id: number
  /** Bytes in use after collections, as V8 counts them. */
  readonly heapBytes: number
  readonly residentBytes: number
  /** The turns that were recorded (apps/bench/src/busy.ts). */
  readonly turns: readonly Turn[]
}

/** Milliseconds after its first recorded turn in which a process loads its modules and serves no client. */
const LOADING_MS = 1000

/** Takes samples of the members that run. */
export class Sampler {
  readonly #ensemble: Ensemble
  /** Turns that were read, by the folder of the process; each start has one of its own. */
  readonly #read = new Map<string, number>()

  constructor(ensemble: Ensemble) {
    this.#ensemble = ensemble
  }

  take(): Promise<Sample[]> {
    return Promise.all(
      this.#ensemble.running.map(async (id) => {
        const member = this.#ensemble.member(id)
        const text = await fourLetterWord(member.port, 'mntr')
        const heapBytes = Number(/^zk_heap_used_bytes\s+(\d+)$/m.exec(text)?.[1] ?? NaN)
        const turns = this.#turnsOf(dirname(member.configFile))
        return { id, heapBytes, residentBytes: member.residentBytes, turns }
      }),
    )
  }

  #turnsOf(folder: string): Turn[] {
    const file = join(folder, BUSY_FILE)
    const turns = existsSync(file) ? parseTurns(readFileSync(file, 'latin1')) : []
    const from = this.#read.get(folder) ?? 0
    this.#read.set(folder, turns.length)
    const loadedAt = (turns[0]?.at ?? 0) + LOADING_MS
    return turns.slice(from).filter(({ at }) => at > loadedAt)
  }
}

const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
const largest = (numbers: readonly number[]): number => Math.max(...numbers)

/** Returns the figures of some samples as one line. */
export function describeSamples(samples: readonly Sample[]): string {
  const turns = samples.flatMap((one) => one.turns)
  const [held, busy] = [longestTurn(turns, 'held'), longestTurn(turns, 'busy')]
  return [
    `heap ${mib(largest(samples.map(({ heapBytes }) => heapBytes)))}`,
    `resident ${mib(largest(samples.map(({ residentBytes }) => residentBytes)))}`,
    `longest turn ${held?.held.toFixed(0) ?? 0} ms (busy ${held?.busy.toFixed(0) ?? 0}, without a processor ${held?.starved.toFixed(0) ?? 0})`,
    `busiest turn ${busy?.busy.toFixed(0) ?? 0} ms`,
  ].join(', ')
}
