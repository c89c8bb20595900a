import type { Clock } from '@zabra/runtime'

/** Steps in one turn, unless they take `SLICE_MS`: code that runs for the first time is many times as slow. */
const STEPS_PER_SLICE = 3
const SLICE_MS = 1

export interface SliceScheduler {
  /** Runs an action in a later turn of the event loop. */
  readonly defer: (action: () => void) => void
  readonly clock: Pick<Clock, 'monotonic'>
}

/** A task that runs at once, or in steps between which the event loop runs other work. */
export interface SlicedTask {
  /** Does the work, or returns its steps. */
  readonly begin: () => Generator<void> | undefined
  /** Called when the queue is aborted before the work is done. */
  readonly onDropped?: () => void
}

/**
 * Runs tasks in order. A task that takes several steps runs a few of them in each turn of the event loop; tasks that are added
 * meanwhile wait behind it.
 */
export class SlicedQueue {
  readonly #scheduler: SliceScheduler
  #waiting: SlicedTask[] = []
  #current: SlicedTask | undefined
  #steps: Generator<void> | undefined
  #isInStep = false
  #isScheduled = false

  constructor(scheduler: SliceScheduler) {
    this.#scheduler = scheduler
  }

  /** Whether a task is in progress, so that an added one would wait. */
  get isBusy(): boolean {
    return this.#current !== undefined
  }

  add(task: SlicedTask): void {
    this.#waiting.push(task)
    if (!this.isBusy) this.#run()
  }

  /**
   * Runs steps of which the first is often the last: the first one now, and the rest, if any, in slices. The queue must not be
   * busy.
   */
  run(steps: Generator<void>): void {
    if (steps.next().done !== true) this.add({ begin: () => steps })
  }

  /** Finishes the current task in this turn. Does nothing when called from one of its steps. */
  drainCurrent(): void {
    if (this.#isInStep) return
    while (this.#steps !== undefined && !this.#step());
  }

  /** Finishes all tasks in this turn. */
  drain(): void {
    while (this.isBusy && !this.#isInStep) {
      this.drainCurrent()
      this.#run()
    }
  }

  /** Drops all tasks, the current one included. */
  abort(): void {
    const dropped = this.#current === undefined ? this.#waiting : [this.#current, ...this.#waiting]
    this.#waiting = []
    this.#current = this.#steps = undefined
    for (const task of dropped) task.onDropped?.()
  }

  #run(): void {
    while (this.#current === undefined) {
      const task = this.#waiting.shift()
      if (task === undefined) return
      this.#current = task
      this.#steps = task.begin()
      if (this.#steps === undefined) this.#current = undefined
      else if (!this.#runSlice()) return this.#schedule()
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#scheduler.defer(() => {
      this.#isScheduled = false
      if (this.#steps === undefined) return
      if (this.#runSlice()) this.#run()
      else this.#schedule()
    })
  }

  /** Runs the steps of one turn. Returns true when the task is done or was dropped. */
  #runSlice(): boolean {
    const { clock } = this.#scheduler
    const end = clock.monotonic() + SLICE_MS
    for (let step = 1; ; step++) {
      if (this.#step()) return true
      if (step === STEPS_PER_SLICE || clock.monotonic() >= end) return false
    }
  }

  /** Runs one step. Returns true when the task is done or was dropped. */
  #step(): boolean {
    const steps = this.#steps!
    this.#isInStep = true
    let isDone = true
    try {
      isDone = steps.next().done === true
    } finally {
      this.#isInStep = false
      if (isDone && this.#steps === steps) this.#current = this.#steps = undefined
    }
    return this.#steps === undefined
  }
}
