import type { Client } from '@zabra/client/core'
import type { RandomSource } from '../nemesis.ts'
import type { ExclusionChecker } from '../exclusion-checker.ts'

/**
 * The participants and controls of a scenario: clients under faults, one client without, and the clock. A unit
 * test or a simulation provides it.
 */
export interface ScenarioContext {
  readonly prng: RandomSource
  readonly clients: readonly Client[]
  /** Names of the clients, for the checker. */
  readonly names: readonly string[]
  readonly observer: Client
  /** Resolves after `ms` milliseconds, regardless of faults. */
  readonly sleep: (ms: number) => Promise<void>
  /** Stops all faults, and waits until every client has recovered. */
  readonly waitUntilHealed: () => Promise<void>
  /** Creates a checker that allows `limit` to be held at once. */
  readonly createChecker: (limit?: number) => ExclusionChecker
}

/** Runs a recipe and throws on a violation. */
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

/** Throws unless both values have the same JSON text; the order of maps and sets is ignored. */
export function expectEqual(what: string, got: unknown, expected: unknown): void {
  const [is, mustBe] = [JSON.stringify(got, plain), JSON.stringify(expected, plain)]
  if (is !== mustBe) throw new Error(`${what}: expected ${mustBe}, got ${is}`)
}
