/** A seed with violations. */
export interface Failure {
  readonly seed: number
  readonly checker: string
  readonly message: string
  /** The command that replays the seed. */
  readonly replay: string
}

/** The result of some seeds, in a form that can be sent between processes. */
export interface Outcome {
  /** Seeds with violations. */
  readonly failures: readonly Failure[]
  readonly eventCount: number
  readonly virtualMs: number
  /** Number of seeds that were run twice. */
  readonly compared: number
  readonly counts: Readonly<Record<string, number>>
  readonly recoveryMs: number
}
