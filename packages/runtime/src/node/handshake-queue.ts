import { addressBlockOf } from '../address-block.ts'
import { AddressRecords, Rank } from './address-records.ts'
import { RecentMap } from './recent-map.ts'

/** Milliseconds of one turn of the event loop that the starts of handshakes take together; one that has begun takes its own time. */
const MAX_TURN_MS = 3
/** The part of it in which first bytes are read, before handshakes start. */
const MAX_READ_MS = 1.5
/**
 * Places of handshakes that have begun and are not complete: what their peers send next is processed when it arrives, so their number
 * bounds a turn in which all of them do.
 */
const PLACES = 64
const PLACES_OF_ADDRESS = 32
/** Places of a handshake in which the client has to send a second ClientHello. */
const PLACES_OF_RETRY = 16
/** The same for one whose certificates no guard judges: a chain may take half a second. */
const PLACES_OF_UNGUARDED = 4
/** Milliseconds after which a handshake loses its place if others wait for it. */
const MAX_HOLD_MS = 1000
/**
 * The least such time in a flood. The time of a rank halves with every `LOST_PLACES_BEFORE_HALF` that handshakes of it lose, so that
 * hundreds of silent addresses have lost theirs within seconds. After `LOST_BEFORE_LONGER` handshakes at the least time it is `MAX_HOLD_MS`
 * again: clients with a long round trip need more.
 */
const MIN_HOLD_MS = 50
const LOST_PLACES_BEFORE_HALF = 32
const LOST_BEFORE_LONGER = 64
/** A handshake that is completed raises the time of its rank to so many times its own. */
const HOLD_PER_READY = 4
/** Every fourth start goes by the order of the addresses alone, so that those of a higher rank keep none out. */
const STARTS_BY_RANK = 3
/** Milliseconds between two looks for places while all are taken. */
const RETRY_MS = 25
/** Milliseconds in which an address starts no handshake, for each KiB that it has sent in one that failed. */
const PAUSE_MS_PER_KIB = 50
/** Others of the address wait no longer than that, whatever was sent: less than the timeout of a handshake. */
const MAX_PAUSE_MS = 8000
/** Bytes of a failed handshake that may have held a costly chain of certificates: 13 of the shortest that take 2 ms each. */
const MAX_FAILED_BYTES = 6144
/** Most addresses with a pause. */
const MAX_PAUSED = 1000

/** The clock and the event loop. */
export interface HandshakeScheduler {
  /** Returns the time in milliseconds. */
  now(): number
  /** Runs a function in a later turn, after the I/O that is ready. */
  runLater(action: () => void): void
  /** Runs a function in this turn, once what was started has been processed. */
  afterStart(action: () => void): void
  after(ms: number, action: () => void): void
}

export const nodeScheduler: HandshakeScheduler = {
  now: () => performance.now(),
  runLater: (action) => void setImmediate(action),
  afterStart: (action) => process.nextTick(action),
  after: (ms, action) => void setTimeout(action, ms).unref(),
}

/** A handshake whose ClientHello has arrived. */
export interface Handshake {
  /** The address of the client, without its port. */
  readonly host: string
  /** Whether the client is asked for a certificate, which a guard judges if its address is not trusted when it starts. */
  readonly asksForCertificate: boolean
  /** Whether the client has to send a second ClientHello. */
  readonly needsRetry: boolean
  start(): void
  /** Closes it in favour of others. */
  abandon(reason: string): void
}

/** What a handshake has shown, once it is complete or its connection has closed. */
export interface HandshakeOutcome {
  /** Whether the client has shown a trusted certificate. */
  readonly isTrusted?: boolean
  /** The bytes that the client has sent, if the handshake has failed. */
  readonly failedAfterBytes?: number
}

/** How long handshakes of one rank may keep their places while others wait. */
interface Hold {
  ms: number
  /** Places that were lost since `ms` has changed; at the least time, handshakes that have lost theirs. */
  lost: number
}

interface Started {
  readonly at: number
  readonly places: number
  /** Whether it may show a chain of certificates that no guard judges. */
  readonly isUnguarded: boolean
}

/** Returns the name of the addresses that count as that of the client, a network of IPv6 as one. */
const hostOf = ({ host }: Handshake): string => addressBlockOf(host)

/** The handshakes of one address. */
interface HostState {
  readonly host: string
  readonly waiting: Set<Handshake>
  /** Oldest first. */
  readonly started: Map<Handshake, Started>
  places: number
}

/**
 * Starts TLS handshakes one after the other, as many as fit into a turn of the event loop, in rounds over the addresses of the
 * clients: one takes up to some milliseconds of processor time, and thousands of clients may connect at once. Addresses that have shown a
 * trusted certificate come first, those whose handshakes have failed last.
 */
export class HandshakeQueue {
  readonly #scheduler: HandshakeScheduler
  /** Those with handshakes, in the order of their next starts. */
  readonly #hosts = new Map<string, HostState>()
  /** When an address may start its next handshake. */
  readonly #pausedUntil = new RecentMap<string, number>(MAX_PAUSED)
  readonly #records: AddressRecords
  /** Read the first bytes of clients. */
  readonly #reads: (() => void)[] = []
  #places = 0
  #waiting = 0
  #starts = 0
  /** By rank: a flood has the rank of failed addresses, and shortens the time of that rank alone. */
  readonly #holds: ReadonlyMap<number, Hold> = new Map(
    Object.values(Rank).map((rank) => [rank, { ms: MAX_HOLD_MS, lost: 0 }]),
  )
  #isScheduled = false
  #isRetrying = false

  constructor(
    scheduler: HandshakeScheduler = nodeScheduler,
    records = new AddressRecords(() => scheduler.now()),
  ) {
    this.#scheduler = scheduler
    this.#records = records
  }

  /** Starts a handshake in this or a later turn. */
  add(handshake: Handshake): void {
    const host = hostOf(handshake)
    let state = this.#hosts.get(host)
    if (state === undefined)
      this.#hosts.set(host, (state = { host, waiting: new Set(), started: new Map(), places: 0 }))
    state.waiting.add(handshake)
    this.#waiting++
    this.#schedule()
  }

  /** Reads the first bytes of a client in a later turn: hundreds may send them at the same time. */
  read(action: () => void): void {
    this.#reads.push(action)
    this.#schedule()
  }

  /** Removes a handshake that is complete, or whose connection has closed. */
  remove(handshake: Handshake, { isTrusted = false, failedAfterBytes }: HandshakeOutcome = {}): void {
    const host = hostOf(handshake)
    const state = this.#hosts.get(host)
    if (state === undefined) return
    const started = this.#leave(state, handshake)
    if (state.waiting.delete(handshake)) this.#waiting--
    else if (started !== undefined) {
      if (isTrusted) this.#records.trust(host)
      if (failedAfterBytes === undefined) this.#succeed(host, started)
      else this.#punish(state, handshake, failedAfterBytes)
    }
    if (this.#waiting === 0) this.#forgetHolds(new Set())
    if (state.waiting.size === 0 && state.started.size === 0) this.#hosts.delete(host)
    if (this.#waiting > 0) this.#schedule()
  }

  /** Gives the places of a handshake back, if it has any. */
  #leave(state: HostState, handshake: Handshake): Started | undefined {
    const started = state.started.get(handshake)
    if (started === undefined) return undefined
    state.started.delete(handshake)
    state.places -= started.places
    this.#places -= started.places
    return started
  }

  #succeed(host: string, { at }: Started): void {
    const hold = this.#holdOf(host)
    this.#records.succeed(host)
    const needed = HOLD_PER_READY * (this.#scheduler.now() - at)
    if (needed > hold.ms) setHold(hold, Math.min(needed, MAX_HOLD_MS))
  }

  #holdOf(host: string): Hold {
    return this.#holds.get(this.#records.rankOf(host))!
  }

  /** Resets the times of the ranks without a waiting handshake. */
  #forgetHolds(waiting: ReadonlySet<number>): void {
    for (const [rank, hold] of this.#holds) if (!waiting.has(rank)) setHold(hold, MAX_HOLD_MS)
  }

  /** Delays the next handshakes of an address that has sent so many costly bytes. */
  delay(address: string, bytes: number): void {
    const host = addressBlockOf(address)
    const now = this.#scheduler.now()
    const from = Math.max(now, this.#pausedUntil.get(host) ?? 0)
    const until = from + (bytes / 1024) * PAUSE_MS_PER_KIB
    this.#pausedUntil.set(host, Math.min(until, now + MAX_PAUSE_MS))
  }

  #punish(state: HostState, { asksForCertificate }: Handshake, bytes: number): void {
    const { host } = state
    this.delay(host, bytes)
    this.#records.fail(host)
    if (!asksForCertificate || bytes <= MAX_FAILED_BYTES) return
    this.#records.suspect(host)
    // What they have sent may have arrived in this turn of the event loop.
    for (const [other, { isUnguarded }] of state.started)
      if (isUnguarded) this.#abandon(state, other, `a handshake of ${host} has failed after ${bytes} bytes`)
  }

  /** Closes a handshake that has begun. Its places are free at once, so that it is closed once. */
  #abandon(state: HostState, handshake: Handshake, reason: string): void {
    this.#leave(state, handshake)
    handshake.abandon(reason)
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#scheduler.runLater(() => {
      const begin = this.#scheduler.now()
      this.#readSome(begin + MAX_READ_MS)
      this.#startSome(begin + MAX_TURN_MS)
    })
  }

  #readSome(end: number): void {
    let read = 0
    while (read < this.#reads.length) {
      this.#reads[read++]!()
      if (this.#scheduler.now() >= end) break
    }
    this.#reads.splice(0, read)
  }

  /** Starts one, and the next one after it while there is time. Without a place for one, those that wait are looked at again later. */
  #startSome(end: number): void {
    const handshake = this.#takeNext()
    if (handshake === undefined) {
      this.#isScheduled = false
      if (this.#reads.length > 0) this.#schedule()
      else if (this.#waiting > 0) this.#retryLater()
      return
    }
    handshake.start()
    this.#scheduler.afterStart(() => {
      if (this.#scheduler.now() < end) return this.#startSome(end)
      this.#isScheduled = false
      if (this.#waiting > 0 || this.#reads.length > 0) this.#schedule()
    })
  }

  #takeNext(): Handshake | undefined {
    if (this.#places === PLACES) return undefined
    const now = this.#scheduler.now()
    const byRank = this.#starts % (STARTS_BY_RANK + 1) < STARTS_BY_RANK
    let next: { readonly state: HostState; readonly handshake: Handshake } | undefined
    let nextRank = -Infinity
    for (const state of this.#hosts.values()) {
      const [handshake] = state.waiting
      if (handshake === undefined) continue
      const rank = this.#records.rankOf(state.host)
      if (rank <= nextRank || this.#isPaused(state, now) || !this.#hasPlace(state, handshake)) continue
      next = { state, handshake }
      nextRank = rank
      if (!byRank || rank === Rank.TRUSTED) break
    }
    if (next === undefined) return undefined
    this.#starts++
    const { state, handshake } = next
    const places = this.#placesOf(state, handshake)
    state.waiting.delete(handshake)
    this.#waiting--
    const isUnguarded = this.#isUnguarded(state, handshake)
    state.started.set(handshake, { at: now, places, isUnguarded })
    state.places += places
    this.#places += places
    this.#hosts.delete(state.host)
    this.#hosts.set(state.host, state)
    return handshake
  }

  /** Returns the places that a handshake takes: more than one if what the client sends next may be costly. */
  #placesOf(state: HostState, handshake: Handshake): number {
    return handshake.needsRetry
      ? PLACES_OF_RETRY
      : this.#isUnguarded(state, handshake)
        ? PLACES_OF_UNGUARDED
        : 1
  }

  /** Returns whether no guard judges the certificates of the client. */
  #isUnguarded({ host }: HostState, { asksForCertificate }: Handshake): boolean {
    return asksForCertificate && this.#records.isTrusted(host)
  }

  #isPaused({ host }: HostState, now: number): boolean {
    const until = this.#pausedUntil.get(host)
    if (until !== undefined && until > now) return true
    this.#pausedUntil.delete(host)
    return false
  }

  #hasPlace(state: HostState, handshake: Handshake): boolean {
    return this.#places + this.#placesOf(state, handshake) <= PLACES && this.#hasOwnPlace(state, handshake)
  }

  /**
   * Returns whether its address has a place for a handshake. One that is unknown has one at a time where certificates are asked for: the
   * connections behind the first trusted one need no guard, which costs them time for as long as they are open. Where certificates are
   * wanted, the first one may show none: then others do not either.
   */
  #hasOwnPlace(state: HostState, handshake: Handshake): boolean {
    if (handshake.asksForCertificate && this.#records.isUnknown(state.host)) return state.started.size === 0
    return state.places + this.#placesOf(state, handshake) <= PLACES_OF_ADDRESS
  }

  #retryLater(): void {
    if (this.#isRetrying) return
    this.#isRetrying = true
    this.#scheduler.after(RETRY_MS, () => {
      this.#isRetrying = false
      this.#closeOldest()
      if (this.#waiting > 0) this.#schedule()
    })
  }

  /** Closes the oldest handshakes of those that are in the way of others, if they have had their time. */
  #closeOldest(): void {
    const now = this.#scheduler.now()
    let wanted = 0
    const waiting = new Set<number>()
    const holding: { readonly rank: number; readonly state: HostState }[] = []
    for (const state of this.#hosts.values()) {
      const rank = this.#records.rankOf(state.host)
      if (state.started.size > 0) holding.push({ rank, state })
      const [handshake] = state.waiting
      if (handshake === undefined || this.#isPaused(state, now) || this.#hasPlace(state, handshake)) continue
      if (!this.#hasOwnPlace(state, handshake)) {
        this.#closeHeld(state, 1, MAX_HOLD_MS)
        continue
      }
      wanted += this.#placesOf(state, handshake)
      waiting.add(rank)
    }
    this.#forgetHolds(waiting)
    const highest = Math.max(...waiting)
    holding.sort((a, b) => a.rank - b.rank || b.state.places - a.state.places)
    for (const { rank, state } of holding) {
      if (wanted <= 0) return
      wanted -= this.#closeHeld(state, wanted, rank > highest ? MAX_HOLD_MS : this.#holds.get(rank)!.ms)
    }
  }

  /** Closes the oldest handshakes of an address that were held for so long, until so many places are free. Returns how many are. */
  #closeHeld(state: HostState, wanted: number, holdMs: number): number {
    const now = this.#scheduler.now()
    let freed = 0
    for (const [handshake, { at, places }] of state.started) {
      if (freed >= wanted || now - at < holdMs) break
      freed += places
      noteLost(this.#holdOf(state.host), places)
      this.#records.fail(state.host)
      this.#abandon(
        state,
        handshake,
        `others wait, and its TLS handshake took more than ${Math.floor(holdMs)} ms`,
      )
    }
    return freed
  }
}

function setHold(hold: Hold, ms: number): void {
  hold.ms = ms
  hold.lost = 0
}

/** Counts a handshake that has lost its places. */
function noteLost(hold: Hold, places: number): void {
  if (hold.ms > MIN_HOLD_MS) {
    hold.lost += places
    if (hold.lost >= LOST_PLACES_BEFORE_HALF) setHold(hold, Math.max(hold.ms / 2, MIN_HOLD_MS))
  } else if (++hold.lost === LOST_BEFORE_LONGER) setHold(hold, MAX_HOLD_MS)
}
