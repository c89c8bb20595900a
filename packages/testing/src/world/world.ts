import { invariant, type Logger } from '@zabra/runtime'
import { nodeClock } from '@zabra/runtime/node'
import { Prng } from './prng.ts'
import { DiskImage } from './disk.ts'
import { EventQueue, type ScheduledEvent } from './event-queue.ts'
import { SimulatedNetwork } from './network.ts'
import { Host, type Incarnation } from './process.ts'

/** Something that a process, or the world, did: for transcripts. */
export interface TraceEvent {
  readonly at: number
  readonly host: string
  readonly event: string
  readonly detail: string
}

/** More than this many events at one moment is a loop that never waits. */
const MAX_EVENTS_AT_ONE_TIME = 200_000
/** Events between two turns of the real event loop, so that signals and output get through. */
const EVENTS_PER_TURN = 20_000

/**
 * A world in which everything that happens comes from one queue: time is virtual, chance is drawn from a seed, disks and
 * networks are simulated. The same seed gives the same history, whose fingerprint is `hash`.
 */
export class SimulatedWorld {
  readonly seed: number
  readonly prng: Prng
  readonly network: SimulatedNetwork
  readonly hosts: Host[] = []
  /** Milliseconds since the world began. */
  now = 0
  /** Events so far. */
  eventCount = 0
  /** A fingerprint of all that has happened. */
  hash = 0x811c9dc5
  /** Hears each note; undefined when nobody does. */
  onTrace: ((note: TraceEvent) => void) | undefined
  /** Hears each line that a process logs. */
  onLog: ((who: Incarnation, level: keyof Logger, facts: object, sentence: string) => void) | undefined
  /** Hears what an event threw; without one it ends the run. */
  onError: ((error: unknown, who: Incarnation | undefined) => void) | undefined
  readonly #queue = new EventQueue()
  #afterPromises: { readonly to: Incarnation; readonly action: () => void }[] = []
  #pids = 0
  #moment = 0
  #eventsAtMoment = 0
  #running = false

  constructor(seed: number) {
    this.seed = seed
    this.prng = new Prng(seed)
    this.network = new SimulatedNetwork(this)
  }

  /** Adds a machine. Servers and clients find it by its name and by its address. */
  addHost(name: string): Host {
    const index = this.hosts.length + 1
    const host = new Host(this, name, `10.0.${index >> 8}.${index & 255}`, new DiskImage(this, name))
    this.hosts.push(host)
    return host
  }

  nextPid(): number {
    return ++this.#pids
  }

  /** Makes something happen after a time; to a process, unless its life is over by then. */
  schedule(delayMs: number, to: Incarnation | undefined, kind: string, action: () => void): ScheduledEvent {
    return this.#queue.add(this.now + delayMs, to, kind, action)
  }

  /** The same at a time of the world, to the last bit: what is to come at one time comes in the order in which it was asked for. */
  scheduleAt(time: number, to: Incarnation | undefined, kind: string, action: () => void): ScheduledEvent {
    return this.#queue.add(Math.max(time, this.now), to, kind, action)
  }

  afterPromises(to: Incarnation, action: () => void): void {
    this.#afterPromises.push({ to, action })
  }

  /** Mixes a number into the fingerprint. */
  mixIntoHash(value: number): void {
    this.hash = Math.imul(this.hash ^ (value | 0), 0x01000193)
  }

  trace(who: Incarnation | undefined, what: string, detail: string): void {
    for (let i = 0; i < what.length; i++) this.mixIntoHash(what.charCodeAt(i))
    this.onTrace?.({ at: this.now, host: who?.host.name ?? 'world', event: what, detail })
  }

  logged(who: Incarnation, level: keyof Logger, facts: object, sentence: string): void {
    this.mixIntoHash(sentence.length)
    this.onLog?.(who, level, facts, sentence)
  }

  /**
   * Plays events until `done` says so or, at the latest, until `untilMs`. Resolves to whether `done` said so. Between two
   * events all promises come to rest, so nothing in the world depends on the real time that anything takes.
   */
  run(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    invariant(!this.#running, 'One caller at a time plays the world.')
    this.#running = true
    return new Promise((resolve, reject) => {
      const finish = (isDone: boolean): void => {
        this.#running = false
        resolve(isDone)
      }
      const turn = (): void => {
        try {
          if (this.#runAfterPromises()) return afterAllPromises(turn)
          if (done()) return finish(true)
          const next = this.#queue.peek
          if (next === undefined || next.at > untilMs) {
            this.now = Math.max(this.now, untilMs)
            return finish(false)
          }
          this.#dispatch(this.#queue.pop()!)
        } catch (error) {
          this.#running = false
          return reject(error instanceof Error ? error : new Error(String(error)))
        }
        if (this.eventCount % EVENTS_PER_TURN === 0) nodeClock.immediate(turn)
        else afterAllPromises(turn)
      }
      afterAllPromises(turn)
    })
  }

  /** Plays until a promise of this world settles. Rejects when it does not within `withinMs`. */
  async runUntilSettled<T>(promise: Promise<T>, withinMs: number): Promise<T> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    promise.then(settle, settle)
    if (await this.run(this.now + withinMs, () => isSettled)) return promise
    throw new Error(`Expected it to be done within ${withinMs} ms of the world's time; it still waits`)
  }

  #dispatch(happening: ScheduledEvent): void {
    const { at, owner: to, kind, action } = happening
    if (action === undefined) return
    if (to !== undefined) {
      if (!to.isAlive) return
      if (to.host.isPaused) return void to.host.deferredEvents.push(happening)
    }
    this.now = at
    this.eventCount++
    this.#checkProgress(at, kind)
    this.mixIntoHash((at * 1000) | 0)
    this.mixIntoHash(to === undefined ? 0 : to.pid)
    happening.action = undefined
    this.#invoke(to, action)
  }

  /** Runs what waits for promises to rest. True when there was something. */
  #runAfterPromises(): boolean {
    if (this.#afterPromises.length === 0) return false
    const actions = this.#afterPromises
    this.#afterPromises = []
    for (const { to, action } of actions) if (to.isAlive) this.#invoke(to, action)
    return true
  }

  #invoke(to: Incarnation | undefined, action: () => void): void {
    if (this.onError === undefined) return action()
    try {
      action()
    } catch (error) {
      this.onError(error, to)
    }
  }

  #checkProgress(at: number, kind: string): void {
    if (at !== this.#moment) {
      this.#moment = at
      this.#eventsAtMoment = 0
    } else if (++this.#eventsAtMoment > MAX_EVENTS_AT_ONE_TIME) {
      throw new Error(
        `Expected time to pass; ${MAX_EVENTS_AT_ONE_TIME} events happened at ${at} ms, the last a "${kind}"`,
      )
    }
  }
}

/**
 * Runs something once every promise has come to rest. From within a microtask, because what is queued for "after promises"
 * outside of one runs before them.
 */
function afterAllPromises(action: () => void): void {
  queueMicrotask(() => nodeClock.afterMicrotasks(action))
}
