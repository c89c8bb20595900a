import { setTimeout as wait } from 'node:timers/promises'
import { Client, ConnectionLost, ErrorReply } from '../harness/client.ts'
import type { NeutralClock } from './neutral-clock.ts'

/** What was seen of a member between two times, in milliseconds on a neutral clock. */
export interface Sample {
  readonly from: number
  readonly to: number
  readonly isGood: boolean
}

/** Milliseconds on a neutral clock. */
export interface Limits {
  /** How long a member may say that it is ready while clients fail. */
  readonly falselyReadyMs: number
  /** How long it may say that it is not ready while they succeed. */
  readonly falselyUnreadyMs: number
}

interface Span {
  readonly from: number
  readonly to: number
}

const INTERVAL_MS = 50
/** A probe that takes longer, on the neutral clock, has failed. */
const PROBE_MS = 1000

/**
 * Compares what a member says at `/readyz` with what happens to new clients, each some 20 times a second: they open a session, and
 * write to `path`.
 */
export class ReadinessWatch {
  readonly #port: number
  readonly #adminPort: number
  readonly #path: string
  readonly #clock: NeutralClock
  readonly #verdicts: Sample[] = []
  readonly #probes: Sample[] = []
  readonly #end = new AbortController()
  readonly #loops: Promise<unknown>

  constructor(port: number, adminPort: number, path: string, clock: NeutralClock) {
    this.#clock = clock
    this.#port = port
    this.#adminPort = adminPort
    this.#path = path
    this.#loops = Promise.all([
      this.#repeat(this.#verdicts, () => this.isReady()),
      this.#repeat(this.#probes, () => this.#probe()),
    ])
  }

  /** Resolves to what the member says now, of reads alone or of all requests; false when it does not answer. */
  async isReady(query = ''): Promise<boolean> {
    try {
      const signal = this.#clock.after(PROBE_MS)
      return (await fetch(`http://127.0.0.1:${this.#adminPort}/readyz${query}`, { signal })).status === 200
    } catch {
      return false
    }
  }

  /** Ends the watch. Resolves to the contradictions, and to how many samples there were. */
  async end(limits: Limits) {
    this.#end.abort()
    await this.#loops
    return {
      contradictions: contradictions(this.#verdicts, this.#probes, limits),
      verdicts: this.#verdicts.length,
      probes: this.#probes.length,
      successes: this.#probes.filter(({ isGood }) => isGood).length,
    }
  }

  async #repeat(samples: Sample[], look: () => Promise<boolean>): Promise<void> {
    while (!this.#end.signal.aborted) {
      const from = this.#clock.now()
      const isGood = await look()
      samples.push({ from, to: this.#clock.now(), isGood })
      await wait(INTERVAL_MS)
    }
  }

  async #probe(): Promise<boolean> {
    const connecting = Client.connect(this.#port, { timeoutMs: 4000 })
    let client: Client | undefined
    const writing = (async () => {
      client = await connecting
      await client.set(this.#path, '')
      return true
    })()
    const result = await Promise.race([writing.catch(isFailedProbe), aborted(this.#clock.after(PROBE_MS))])
    void connecting.then((one) => (result ? one.close() : one.drop())).catch(() => {})
    return result
  }
}

const aborted = (signal: AbortSignal): Promise<false> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(false), { once: true }))

/** Returns false for what a client may get from a server that serves no clients; throws anything else. */
function isFailedProbe(error: unknown): false {
  const isExpected =
    error instanceof ConnectionLost ||
    error instanceof ErrorReply ||
    /ECONN|EPIPE/.test((error as NodeJS.ErrnoException).code ?? '')
  if (!isExpected) throw error
  return false
}

/** Returns where verdicts and probes contradict each other for longer than the limits. */
export function contradictions(
  verdicts: readonly Sample[],
  probes: readonly Sample[],
  { falselyReadyMs, falselyUnreadyMs }: Limits,
): string[] {
  const found: string[] = []
  for (const isReady of [true, false])
    for (const said of runs(verdicts, isReady))
      for (const seen of runs(probes, !isReady)) {
        const ms = Math.min(said.to, seen.to) - Math.max(said.from, seen.from)
        if (ms > (isReady ? falselyReadyMs : falselyUnreadyMs))
          found.push(
            `${isReady ? 'ready' : 'not ready'} for ${Math.round(ms)} ms while clients ${isReady ? 'fail' : 'succeed'}`,
          )
      }
  return found
}

/** Returns the spans in which all samples are alike: from the end of the first to the begin of the last, where it surely held. */
function runs(samples: readonly Sample[], isGood: boolean): Span[] {
  const spans: Span[] = []
  let run: Sample[] = []
  const endRun = (): void => {
    if (run.length > 1) spans.push({ from: run[0]!.to, to: run.at(-1)!.from })
    run = []
  }
  for (const sample of samples)
    if (sample.isGood === isGood) run.push(sample)
    else endRun()
  endRun()
  return spans
}
