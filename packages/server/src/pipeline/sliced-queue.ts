import type { Clock } from '@zabra/runtime'
import { RingBuffer } from '../core/ring-buffer.ts'
import { STEPS_PER_TURN } from '../core/steps.ts'
import type { Txn } from '../core/types.ts'

/** After this time a turn ends before its last step: code that runs for the first time is many times as slow. */
const SLICE_MS = 1
/** Milliseconds of one turn for tasks that are done at once, looked at after every `TASKS_PER_CHECK`. */
const TASKS_MS = 2
const TASKS_PER_CHECK = 4
/** Watched ancestors of a changed path that take a tenth of a millisecond. */
export const MANY_ANCESTORS = 500

/** Characters of a path that is looked up among thousands of quotas, or hashed, in a tenth of a millisecond. */
export const LONG_PATH = 4096

/** Entries of an access control list that is stored in a tenth of a millisecond, or in some milliseconds if they are long. */
const LONG_ACL = 100

/** Whether a transaction may take a millisecond for its path or its access control list alone. */
export const isLongTxn = (txn: Txn): boolean =>
  ('path' in txn && txn.path.length >= LONG_PATH) || ('acl' in txn && txn.acl.length >= LONG_ACL)

export interface SliceScheduler {
  /** Runs an action in a later turn of the event loop. */
  readonly defer: (action: () => void) => void
  readonly clock: Pick<Clock, 'monotonic'>
  /** Whether no task may begin now; a later turn asks again. By default never. */
  readonly isHeldUp?: () => boolean
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
 * meanwhile wait behind it. Who adds tasks bounds what waits: clients by `PipelineRoom`, learners by `ForwardedBytes`, a leader by
 * `LearnerFlowControl`.
 */
export class SlicedQueue {
  readonly #scheduler: SliceScheduler
  readonly #waiting = new RingBuffer<SlicedTask | undefined>(undefined)
  #current: SlicedTask | undefined
  #steps: Generator<void> | undefined
  #isInStep = false
  #isScheduled = false
  /** Whether tasks wait although none is in progress. */
  #hasMore = false
  /** Whether a later turn ends the count of tasks that were done outside of the queue, and their number and time limit. */
  #isCounting = false
  #ranAtOnce = 0
  #countEnd = 0
  #isResting = false

  constructor(scheduler: SliceScheduler) {
    this.#scheduler = scheduler
  }

  /** Whether an added task would wait: one is in progress, or waits, or this turn has done enough, or the queue is held up. */
  get isBusy(): boolean {
    return this.hasTasks || this.#isHeldUp
  }

  /** Whether a task is in progress, or waits, or this turn has done enough. */
  get hasTasks(): boolean {
    return this.#current !== undefined || this.#waiting.length > 0 || this.#isResting
  }

  get #isHeldUp(): boolean {
    return this.#scheduler.isHeldUp?.() === true
  }

  /** Tasks that are in progress or wait. */
  get length(): number {
    return this.#waiting.length + (this.#current === undefined ? 0 : 1)
  }

  add(task: SlicedTask): void {
    const { hasTasks } = this
    this.#waiting.push(task)
    if (!hasTasks) this.#run()
  }

  /** Runs an action now, or behind the tasks once this turn has done enough. */
  runInOrder(action: () => void): void {
    if (this.isBusy) return this.add({ begin: () => (action(), undefined) })
    action()
    this.countRun(false)
  }

  /** Counts a task that was done at once, outside of the queue. When such tasks take long, those that follow wait for a later turn. */
  countRun(isCostly: boolean): void {
    const { clock, defer } = this.#scheduler
    if (!this.#isCounting) {
      this.#isCounting = true
      this.#ranAtOnce = 0
      this.#countEnd = clock.monotonic() + TASKS_MS
      defer(() => {
        this.#isCounting = this.#isResting = false
        if (this.#current === undefined) this.#run()
      })
    } else if (isCostly || ++this.#ranAtOnce % TASKS_PER_CHECK === 0)
      this.#isResting = clock.monotonic() >= this.#countEnd
  }

  /**
   * Runs steps of which the first is often the last: the first one now, and the rest, if any, in slices of later turns. The queue must
   * not be busy.
   */
  run(steps: Generator<void>): void {
    if (steps.next().done === true) return
    this.#current = { begin: () => steps }
    this.#steps = steps
    this.#schedule()
  }

  /** Drops the tasks that wait, and returns the steps that the current one has left; undefined when called from one of them. */
  takeCurrent(): Generator<void> | undefined {
    const steps = this.#isInStep ? undefined : this.#steps
    if (steps !== undefined) this.#current = this.#steps = undefined
    this.abort()
    return steps
  }

  /** Drops all tasks, the current one included. */
  abort(): void {
    const dropped = [this.#current, ...this.#waiting]
    this.#waiting.clear()
    this.#current = this.#steps = undefined
    for (const task of dropped) task?.onDropped?.()
  }

  #run(): void {
    const { clock } = this.#scheduler
    let end = 0
    for (let begun = 1; this.#current === undefined; begun++) {
      if (this.#waiting.length > 0 && this.#isHeldUp) {
        this.#hasMore = true
        return this.#schedule()
      }
      const task = this.#waiting.shift()
      if (task === undefined) return
      this.#current = task
      this.#steps = task.begin()
      if (this.#steps === undefined) this.#current = undefined
      else if (!this.#runSlice()) return this.#schedule()
      if (this.#waiting.length === 0) continue
      if (begun === 1) end = clock.monotonic() + TASKS_MS
      else if (begun % TASKS_PER_CHECK === 0 && clock.monotonic() >= end) {
        this.#hasMore = true
        return this.#schedule()
      }
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#scheduler.defer(() => {
      this.#isScheduled = false
      const hasMore = this.#hasMore
      this.#hasMore = false
      if (this.#steps === undefined && !hasMore) return
      if (this.#steps === undefined || this.#runSlice()) this.#run()
      else this.#schedule()
    })
  }

  /** Runs the steps of one turn. Returns true when the task is done or was dropped. */
  #runSlice(): boolean {
    const { clock } = this.#scheduler
    const end = clock.monotonic() + SLICE_MS
    for (let step = 1; ; step++) {
      if (this.#step()) return true
      if (step === STEPS_PER_TURN || clock.monotonic() >= end) return false
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
