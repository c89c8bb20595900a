import type { Clock } from '@zabra/runtime'

/** Steps in a turn, unless they have taken so many milliseconds. Code that runs for the first time is many times as slow. */
const STEPS_IN_A_TURN = 3
const TURN_MS = 1

/** What turns are made of. */
export interface SliceScheduler {
  /** Runs something in a turn of its own. */
  readonly defer: (action: () => void) => void
  readonly clock: Pick<Clock, 'monotonic'>
}

/** A piece of work: at once, or in steps between which others have their turns. */
export interface SlicedTask {
  readonly begin: () => Generator<void> | undefined
  /** It will not be done any more. */
  readonly onDropped?: () => void
}

/**
 * Does work in order. What comes while a piece is being done in steps waits behind it; there are few steps in a turn of the event
 * loop, and one when it takes long.
 */
export class SlicedQueue {
  readonly #turns: SliceScheduler
  #waiting: SlicedTask[] = []
  #current: SlicedTask | undefined
  #steps: Generator<void> | undefined
  #inStep = false
  #scheduled = false

  constructor(turns: SliceScheduler) {
    this.#turns = turns
  }

  /** Whether a piece is being done in steps: what is added now waits. */
  get isBusy(): boolean {
    return this.#current !== undefined
  }

  add(work: SlicedTask): void {
    this.#waiting.push(work)
    if (!this.isBusy) this.#run()
  }

  /**
   * Runs work whose first step is often its last: the first step now, and the rest, if any, in slices. The queue must not be
   * busy.
   */
  run(steps: Generator<void>): void {
    if (steps.next().done !== true) this.add({ begin: () => steps })
  }

  /** Does in this turn what is left of the piece that is being done, and nothing that waits. */
  drainCurrent(): void {
    if (this.#inStep) return
    while (this.#steps !== undefined && !this.#step());
  }

  /** Does everything in this turn. */
  drain(): void {
    while (this.isBusy && !this.#inStep) {
      this.drainCurrent()
      this.#run()
    }
  }

  /** Gives up everything, begun or not. */
  abort(): void {
    const dropped = this.#current === undefined ? this.#waiting : [this.#current, ...this.#waiting]
    this.#waiting = []
    this.#current = this.#steps = undefined
    for (const work of dropped) work.onDropped?.()
  }

  #run(): void {
    while (this.#current === undefined) {
      const work = this.#waiting.shift()
      if (work === undefined) return
      this.#current = work
      this.#steps = work.begin()
      if (this.#steps === undefined) this.#current = undefined
      else if (!this.#stepInTurn()) return this.#schedule()
    }
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    this.#turns.defer(() => {
      this.#scheduled = false
      if (this.#steps === undefined) return
      if (this.#stepInTurn()) this.#run()
      else this.#schedule()
    })
  }

  /** As many steps as one turn has room for. True when the piece is through, or was given up. */
  #stepInTurn(): boolean {
    const { clock } = this.#turns
    const end = clock.monotonic() + TURN_MS
    for (let step = 1; ; step++) {
      if (this.#step()) return true
      if (step === STEPS_IN_A_TURN || clock.monotonic() >= end) return false
    }
  }

  /** True when the piece is through, or was given up. */
  #step(): boolean {
    const steps = this.#steps!
    this.#inStep = true
    let isOver = true
    try {
      isOver = steps.next().done === true
    } finally {
      this.#inStep = false
      if (isOver && this.#steps === steps) this.#current = this.#steps = undefined
    }
    return this.#steps === undefined
  }
}
