import { OpCode } from '@zabra/protocol'
import type { Clock } from '@zabra/runtime'
import { userNames } from '../audit/index.ts'
import type { SlowClient } from './slow-requests.ts'
import { formatSessionId } from './log-context.ts'
import { MAX_NAME_BYTES, pathIn } from './request-path.ts'
import { SpaceSaving, type HeavyKey, type Usage } from './space-saving.ts'

export const TOP_KINDS = ['path', 'session', 'address', 'identity'] as const
export type TopKind = (typeof TOP_KINDS)[number]
export const TOP_MEASURES = ['operations', 'bytes', 'time'] as const
export type TopMeasure = (typeof TOP_MEASURES)[number]

/** The busiest keys of one kind over the last minute, the heaviest first. */
export interface TopReport extends Usage {
  /** Milliseconds that the figures cover. */
  readonly windowMs: number
  /** The most requests that one counted request stands for; above 1, the figures are estimates. */
  readonly oneIn: number
  readonly entries: readonly HeavyKey[]
}

/** Keys that a slice keeps for each kind and measure. */
const KEPT = 256
const SLICES = 6
const SLICE_MS = 10_000
/** How long requests are counted after the last look. */
const LOOK_MS = 60_000
/** Above so many requests a second a random sample is counted: one takes some 4 µs, as long as a busy server has for a read. */
const SAMPLED_RATE = 1000
/** Requests that are counted in a second of a sample, about: 30,000 of the last minute, of which 1 % are 300, give or take 34. */
const SAMPLE = 500
/** Requests without a reply of which the path is kept. */
const MAX_PENDING = 10_000

/** A request without a reply. */
interface PendingRequest {
  readonly path: string | undefined
  readonly bytes: number
  /** Requests that it stands for. */
  readonly operations: number
}

/** The keys of a connection, and its requests without a reply by their xids. */
export interface CountedClient {
  /** Which of the times of counting it belongs to. */
  readonly round: number
  readonly identities: SlowClient['identities']
  readonly session: string
  readonly address: string
  readonly identity: string
  readonly pending: Map<number, PendingRequest>
}

/** A connection, which has its keys at hand: replies of requests that are not in the sample find none. */
export interface TopClient extends SlowClient {
  counted: CountedClient | undefined
}

/**
 * Counts the requests of clients by path, session, address and identity, while an operator looks: from one call of `look` to a
 * minute after the last one. Until then, and after that, `isCounting` is false and it holds no counts.
 */
export class TopRequests {
  isCounting = false
  readonly #clock: Clock
  #startedAt = 0
  #endsAt = 0
  #slices: Slice[] = []
  #round = 0
  #pending = 0
  /** When the current second began, and its requests. */
  #second = 0
  #inSecond = 0
  /** Requests for which one is counted now, and those counted with that since it changed. */
  #oneIn = 1
  #taken = 0
  #random = 1

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Starts or goes on to count, and returns what has been counted. */
  look(kind: TopKind, measure: TopMeasure): TopReport {
    const now = this.#clock.monotonic()
    this.#endIfUnwatched(now)
    this.#endsAt = now + LOOK_MS
    if (!this.isCounting) {
      this.isCounting = true
      this.#startedAt = now
      this.#second = now
      this.#inSecond = 0
      this.#oneIn = 1
    }
    this.#dropOldSlices(now)
    // A seventh slice pushes out the first one, which may be less than a minute old.
    const isFull = this.#slices.length === SLICES
    const from = isFull ? this.#slices[0]!.startedAt : Math.max(this.#startedAt, now - SLICES * SLICE_MS)
    return {
      ...totalOf(this.#slices),
      windowMs: Math.round(now - from),
      oneIn: Math.max(1, ...this.#slices.map(({ oneIn }) => oneIn)),
      entries: merge(this.#slices.map((slice) => slice.sketches[kind][measure])),
    }
  }

  /** Whether to count a request that has been received at `now` on the monotonic clock. */
  isInSample(now: number): boolean {
    if (now - this.#second >= 1000) this.#beginSecond(now)
    this.#inSecond++
    if (this.#oneIn === 1) {
      if (this.#inSecond <= SAMPLED_RATE) return true
      this.#oneIn = 2
      this.#taken = 0
    }
    // Clients that send the same requests in turns would be in step with every nth request.
    this.#random = (Math.imul(this.#random, 1_664_525) + 1_013_904_223) >>> 0
    if (this.#random * this.#oneIn >= 2 ** 32) return false
    if (++this.#taken <= SAMPLE) return true
    this.#oneIn *= 2
    this.#taken = 0
    return false
  }

  /** Notes a request of the sample: its body, from `start` to `end`, follows the xid and the op code. */
  received(
    client: TopClient,
    xid: number,
    type: number,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    if (type === OpCode.ping || this.#endIfUnwatched(this.#clock.monotonic())) return
    if (this.#pending >= MAX_PENDING) this.#forgetClients()
    const { pending } = this.#countedClient(client)
    if (!pending.has(xid)) this.#pending++
    const operations = this.#oneIn
    pending.set(xid, { path: pathIn(type, bytes, start, end), bytes: end - start, operations })
  }

  /** Counts a request with its reply of `bytes`, `tookMs` after its receipt. */
  replied(client: TopClient, xid: number, bytes: number, tookMs: number): void {
    const { counted } = client
    if (counted === undefined || counted.pending.size === 0 || counted.round !== this.#round) return
    const request = counted.pending.get(xid)
    if (request === undefined) return
    counted.pending.delete(xid)
    this.#pending--
    const { session, address, identity } = counted
    const { path, operations } = request
    const usage = { operations, bytes: operations * (request.bytes + bytes), timeMs: operations * tookMs }
    this.#currentSlice(this.#clock.monotonic()).add({ path, session, address, identity }, usage)
  }

  #forgetClients(): void {
    this.#round++
    this.#pending = 0
  }

  #beginSecond(now: number): void {
    const perSecond = (this.#inSecond * 1000) / (now - this.#second)
    this.#oneIn = perSecond <= SAMPLED_RATE ? 1 : Math.ceil(perSecond / SAMPLE)
    this.#taken = 0
    this.#second = now
    this.#inSecond = 0
  }

  #endIfUnwatched(now: number): boolean {
    if (!this.isCounting || now < this.#endsAt) return false
    this.isCounting = false
    this.#slices = []
    this.#forgetClients()
    return true
  }

  #countedClient(client: TopClient): CountedClient {
    const { identities } = client
    const known = client.counted?.round === this.#round ? client.counted : undefined
    if (known?.identities === identities) return known
    const counted = {
      round: this.#round,
      identities,
      session: formatSessionId(client.sessionId),
      address: client.host,
      identity: userNames(identities).join(',').slice(0, MAX_NAME_BYTES),
      pending: known?.pending ?? new Map<number, PendingRequest>(),
    }
    client.counted = counted
    return counted
  }

  #currentSlice(now: number): Slice {
    const last = this.#slices.at(-1)
    if (last !== undefined && now - last.startedAt < SLICE_MS) return last
    this.#dropOldSlices(now)
    const slice = new Slice(now)
    this.#slices.push(slice)
    if (this.#slices.length > SLICES) this.#slices.shift()
    return slice
  }

  #dropOldSlices(now: number): void {
    this.#slices = this.#slices.filter(({ startedAt }) => now - startedAt < SLICES * SLICE_MS)
  }
}

type Sketches = Readonly<Record<TopKind, Readonly<Record<TopMeasure, SpaceSaving>>>>

/** What was counted in ten seconds. */
class Slice {
  readonly startedAt: number
  readonly sketches: Sketches = {
    path: createSketches(),
    session: createSketches(),
    address: createSketches(),
    identity: createSketches(),
  }
  operations = 0
  bytes = 0
  timeMs = 0
  oneIn = 1

  constructor(startedAt: number) {
    this.startedAt = startedAt
  }

  add(keys: Readonly<Record<TopKind, string | undefined>>, usage: Usage): void {
    this.operations += usage.operations
    this.bytes += usage.bytes
    this.timeMs += usage.timeMs
    this.oneIn = Math.max(this.oneIn, usage.operations)
    for (const kind of TOP_KINDS) {
      const key = keys[kind]
      if (key === undefined) continue
      const { operations, bytes, time } = this.sketches[kind]
      operations.add(key, usage.operations, usage)
      bytes.add(key, usage.bytes, usage)
      time.add(key, usage.timeMs, usage)
    }
  }
}

const createSketches = (): Readonly<Record<TopMeasure, SpaceSaving>> => ({
  operations: new SpaceSaving(KEPT),
  bytes: new SpaceSaving(KEPT),
  time: new SpaceSaving(KEPT),
})

function totalOf(slices: readonly Slice[]): Usage {
  const total = { operations: 0, bytes: 0, timeMs: 0 }
  for (const { operations, bytes, timeMs } of slices) {
    total.operations += operations
    total.bytes += bytes
    total.timeMs += timeMs
  }
  return total
}

/** Returns the keys of several sketches, the heaviest first. */
function merge(sketches: readonly SpaceSaving[]): HeavyKey[] {
  const merged = new Map<string, HeavyKey>()
  for (const sketch of sketches)
    for (const one of sketch.keys) {
      const sum = merged.get(one.key)
      if (sum === undefined) merged.set(one.key, { ...one })
      else {
        sum.weight += one.weight
        sum.overcount += one.overcount
        sum.operations += one.operations
        sum.bytes += one.bytes
        sum.timeMs += one.timeMs
      }
    }
  return [...merged.values()].toSorted((a, b) => b.weight - a.weight)
}
