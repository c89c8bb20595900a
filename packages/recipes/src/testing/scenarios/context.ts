import type { Client } from '@zabra/client/core'
import type { RandomSource } from '../nemesis.ts'
import type { ExclusionChecker } from '../exclusion-checker.ts'

/** Who plays: clients that suffer, one that does not, and what the world lets them do. A fake keeper or a simulation casts them. */
export interface ScenarioContext {
  readonly prng: RandomSource
  readonly clients: readonly Client[]
  /** The names of the clients, by which a ledger knows them. */
  readonly names: readonly string[]
  readonly observer: Client
  /** Lets time pass, whatever happens to anybody. */
  readonly sleep: (ms: number) => Promise<void>
  /** Ends all faults, and waits until everybody has noticed. */
  readonly waitUntilHealed: () => Promise<void>
  /** Who holds what; at most so much at once. */
  readonly createChecker: (limit?: number) => ExclusionChecker
}

/** Throws when something is wrong. */
export type Scenario = (context: ScenarioContext) => Promise<void>

const byText = (a: unknown, b: unknown): number => (String(a) < String(b) ? -1 : 1)

const plain = (_: string, value: unknown): unknown =>
  typeof value === 'bigint'
    ? `${value}n`
    : value instanceof Map
      ? [...value].toSorted(byText)
      : value instanceof Set
        ? [...value].toSorted(byText)
        : value

/** Throws unless both are written in the same way; the order of maps and sets does not matter. */
export function expectEqual(what: string, got: unknown, expected: unknown): void {
  const [is, mustBe] = [JSON.stringify(got, plain), JSON.stringify(expected, plain)]
  if (is !== mustBe) throw new Error(`${what}: expected ${mustBe}, got ${is}`)
}
