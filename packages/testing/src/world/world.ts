import { invariant, type Logger } from '@zabra/runtime'
import { nodeClock } from '@zabra/runtime/node'
import { Chance } from './chance.ts'
import { Platter } from './disk.ts'
import { EventQueue, type Happening } from './events.ts'
import { Fabric } from './network.ts'
import { Host, type Incarnation } from './process.ts'

/** Something that a process, or the world, did: for transcripts. */
export interface Note {
  readonly at: number
  readonly who: string
  readonly what: string
  readonly detail: string
}

/** More than this many events at one moment is a loop that never waits. */
const SAME_MOMENT_LIMIT = 200_000
/** Events between two turns of the real event loop, so that signals and output get through. */
const BREATH = 20_000

/**
 * A world in which everything that happens comes from one queue: time is virtual, chance is drawn from a seed, disks and
 * networks are simulated. The same seed gives the same history, whose fingerprint is `hash`.
 */
export class World {
  readonly seed: number
  readonly chance: Chance
  readonly network: Fabric
  readonly hosts: Host[] = []
  /** Milliseconds since the world began. */
  now = 0
  /** Events so far. */
  steps = 0
  /** A fingerprint of all that has happened. */
  hash = 0x811c9dc5
  /** Hears each note; undefined when nobody does. */
  onNote: ((note: Note) => void) | undefined
  /** Hears each line that a process logs. */
  onLog: ((who: Incarnation, level: keyof Logger, facts: object, sentence: string) => void) | undefined
  /** Hears what an event threw; without one it ends the run. */
  onError: ((error: unknown, who: Incarnation | undefined) => void) | undefined
  readonly #queue = new EventQueue()
  #after: { readonly to: Incarnation; readonly action: () => void }[] = []
  #pids = 0
  #moment = 0
  #atMoment = 0
  #running = false

  constructor(seed: number) {
    this.seed = seed
    this.chance = new Chance(seed)
    this.network = new Fabric(this)
  }

  /** Adds a machine. Servers and clients find it by its name and by its address. */
  addHost(name: string): Host {
    const index = this.hosts.length + 1
    const host = new Host(this, name, `10.0.${index >> 8}.${index & 255}`, new Platter(this, name))
    this.hosts.push(host)
    return host
  }

  nextPid(): number {
    return ++this.#pids
  }

  /** Makes something happen after a time; to a process, unless its life is over by then. */
  later(delayMs: number, to: Incarnation | undefined, kind: string, action: () => void): Happening {
    return this.#queue.add(this.now + delayMs, to, kind, action)
  }

  /** The same at a time of the world, to the last bit: what is to come at one time comes in the order in which it was asked for. */
  at(time: number, to: Incarnation | undefined, kind: string, action: () => void): Happening {
    return this.#queue.add(Math.max(time, this.now), to, kind, action)
  }

  afterPromises(to: Incarnation, action: () => void): void {
    this.#after.push({ to, action })
  }

  /** Mixes a number into the fingerprint. */
  mix(value: number): void {
    this.hash = Math.imul(this.hash ^ (value | 0), 0x01000193)
  }

  note(who: Incarnation | undefined, what: string, detail: string): void {
    for (let i = 0; i < what.length; i++) this.mix(what.charCodeAt(i))
    this.onNote?.({ at: this.now, who: who?.host.name ?? 'world', what, detail })
  }

  heard(who: Incarnation, level: keyof Logger, facts: object, sentence: string): void {
    this.mix(sentence.length)
    this.onLog?.(who, level, facts, sentence)
  }

  /**
   * Plays events until `done` says so or, at the latest, until `untilMs`. Resolves to whether `done` said so. Between two
   * events all promises come to rest, so nothing in the world depends on the real time that anything takes.
   */
  play(untilMs: number, done: () => boolean = () => false): Promise<boolean> {
    invariant(!this.#running, 'One caller at a time plays the world.')
    this.#running = true
    return new Promise((resolve, reject) => {
      const finish = (isDone: boolean): void => {
        this.#running = false
        resolve(isDone)
      }
      const turn = (): void => {
        try {
          if (this.#afterTurn()) return afterAllPromises(turn)
          if (done()) return finish(true)
          const next = this.#queue.next
          if (next === undefined || next.at > untilMs) {
            this.now = Math.max(this.now, untilMs)
            return finish(false)
          }
          this.#happen(this.#queue.take()!)
        } catch (error) {
          this.#running = false
          return reject(error instanceof Error ? error : new Error(String(error)))
        }
        if (this.steps % BREATH === 0) nodeClock.soon(turn)
        else afterAllPromises(turn)
      }
      afterAllPromises(turn)
    })
  }

  /** Plays until a promise of this world settles. Rejects when it does not within `withinMs`. */
  async settled<T>(promise: Promise<T>, withinMs: number): Promise<T> {
    let isSettled = false
    const settle = (): void => void (isSettled = true)
    promise.then(settle, settle)
    if (await this.play(this.now + withinMs, () => isSettled)) return promise
    throw new Error(`Expected it to be done within ${withinMs} ms of the world's time; it still waits`)
  }

  #happen(happening: Happening): void {
    const { at, to, kind, action } = happening
    if (action === undefined) return
    if (to !== undefined) {
      if (!to.alive) return
      if (to.host.paused) return void to.host.held.push(happening)
    }
    this.now = at
    this.steps++
    this.#watchMoment(at, kind)
    this.mix((at * 1000) | 0)
    this.mix(to === undefined ? 0 : to.pid)
    happening.action = undefined
    this.#run(to, action)
  }

  /** Runs what waits for promises to rest. True when there was something. */
  #afterTurn(): boolean {
    if (this.#after.length === 0) return false
    const actions = this.#after
    this.#after = []
    for (const { to, action } of actions) if (to.alive) this.#run(to, action)
    return true
  }

  #run(to: Incarnation | undefined, action: () => void): void {
    if (this.onError === undefined) return action()
    try {
      action()
    } catch (error) {
      this.onError(error, to)
    }
  }

  #watchMoment(at: number, kind: string): void {
    if (at !== this.#moment) {
      this.#moment = at
      this.#atMoment = 0
    } else if (++this.#atMoment > SAME_MOMENT_LIMIT) {
      throw new Error(
        `Expected time to pass; ${SAME_MOMENT_LIMIT} events happened at ${at} ms, the last a "${kind}"`,
      )
    }
  }
}

/**
 * Runs something once every promise has come to rest. From within a microtask, because what is queued for "after promises"
 * outside of one runs before them.
 */
function afterAllPromises(action: () => void): void {
  queueMicrotask(() => nodeClock.afterPromises(action))
}
