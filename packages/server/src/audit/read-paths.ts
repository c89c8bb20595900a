const PREFIX = 'reads:'

/** The paths whose reads, and those below, are recorded. */
export class ReadPaths {
  /** Without a slash at the end; the root is empty. */
  readonly #paths: readonly string[]

  /** Takes those of `audit.events` that begin with `reads:`. A slash and asterisks at the end mean nothing. */
  constructor(events: readonly string[]) {
    this.#paths = events
      .filter((event) => event.startsWith(PREFIX))
      .map((event) => event.slice(PREFIX.length).replace(/\/\**$/, ''))
  }

  get isEmpty(): boolean {
    return this.#paths.length === 0
  }

  covers(path: string): boolean {
    return this.#paths.some((base) => path === base || path.startsWith(`${base}/`))
  }

  /** Whether a path is above one of the paths. */
  isAbove(path: string): boolean {
    const prefix = path === '/' ? path : `${path}/`
    return this.#paths.some((base) => base.startsWith(prefix))
  }
}
