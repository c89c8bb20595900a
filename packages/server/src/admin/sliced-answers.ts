import type { Clock } from '@zabra/runtime'

/** Milliseconds of one turn of the event loop that all answers take together; work that has begun takes its own time. */
const MAX_TURN_MS = 2
/** Answers that begin in one turn: to send a short one takes longer than to make it. */
const BEGUN_PER_TURN = 8
/** Pieces of an answer that are made at once, unless they take `STEP_MS`, looked at after every `PIECES_PER_CHECK`. */
const PIECES_PER_STEP = 200
const PIECES_PER_CHECK = 20
const STEP_MS = 1
/** Characters that end a step: pieces may be paths of thousands of them. */
const CHARS_PER_STEP = 65_536
/**
 * Milliseconds to send a chunk, which may be the last one, and to encode and send `CHARS_PER_STEP` characters. They are spent after the step,
 * so the measured time lacks them: the last steps of two hundred answers took 2 ms, sending and ending them 8 ms more.
 */
const CHUNK_MS = 1 / 16
const CHARS_MS = 3 / 16

/** Makes the answers to commands and HTTP requests, in parts that share the time of a turn of the event loop. */
export class SlicedAnswers {
  readonly #clock: Pick<Clock, 'monotonic' | 'immediate'>
  readonly #waiting: (() => void)[] = []
  /** Milliseconds that were taken since the last later turn began. */
  #spent = 0
  /** Answers that have begun since then. */
  #begun = 0
  /** Whether parts were made since then outside of it: when they were asked for. */
  #hasSpent = false
  #isScheduled = false

  constructor(clock: Pick<Clock, 'monotonic' | 'immediate'>) {
    this.#clock = clock
  }

  /** Makes an answer: in this turn if there is time, else in a later one behind those that wait. */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    return this.#add(() => {
      this.#begun++
      return work()
    })
  }

  /** Makes a part of an answer, as `run` does. */
  #add<T>(work: () => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(() => {
        try {
          resolve(work())
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)))
        }
      })
      this.#proceed()
    })
  }

  /** Yields pieces joined to chunks, each as soon as it is asked for. An empty piece stands for work without output yet. */
  async *chunksOf(pieces: Iterable<string>): AsyncGenerator<string> {
    const left = pieces[Symbol.iterator]()
    for (;;) {
      const { text, isLast } = await this.#add(() => {
        const chunk: string[] = []
        const end = this.#take(left, chunk)
        return { text: chunk.join(''), isLast: end !== undefined }
      })
      if (text !== '') yield text
      if (isLast) return
    }
  }

  /** Resolves to the result of a computation, whose steps yield empty strings. */
  async result<T>(steps: Generator<string, T>): Promise<T> {
    for (;;) {
      const end = await this.#add(() => this.#take(steps, []))
      if (end !== undefined) return end.value
    }
  }

  #proceed(): void {
    while (this.#spent < MAX_TURN_MS && this.#begun < BEGUN_PER_TURN) {
      const work = this.#waiting.shift()
      if (work === undefined) break
      this.#hasSpent = true
      const begin = this.#clock.monotonic()
      work()
      this.#spent += this.#clock.monotonic() - begin
    }
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#clock.immediate(() => {
      this.#isScheduled = false
      // What was asked for by the sockets of this iteration has had its share; what waits gets the next one.
      const mayProceed = !this.#hasSpent
      this.#spent = this.#begun = 0
      this.#hasSpent = false
      if (this.#waiting.length === 0) return
      if (!mayProceed) return this.#schedule()
      this.#proceed()
      this.#hasSpent = false
    })
  }

  /** Takes the pieces of one step. Returns the end when they were the last ones. */
  #take<T>(pieces: Iterator<string, T>, chunk: string[]): { readonly value: T } | undefined {
    const end = this.#clock.monotonic() + STEP_MS
    let chars = 0
    let isSent = true
    try {
      for (let taken = 1; ; taken++) {
        const piece = pieces.next()
        if (piece.done === true) return piece
        chunk.push(piece.value)
        chars += piece.value.length
        const isFull = taken === PIECES_PER_STEP || chars >= CHARS_PER_STEP
        const isOver = isFull || (taken % PIECES_PER_CHECK === 0 && this.#clock.monotonic() >= end)
        if (!isOver) continue
        isSent = chars > 0
        return undefined
      }
    } finally {
      if (isSent) this.#spent += CHUNK_MS + (CHARS_MS * chars) / CHARS_PER_STEP
    }
  }
}

/** Yields as many elements as there are now: a set and a map are iterated with those that are added meanwhile, perhaps without end. */
export function* presentIn<T>(elements: Iterable<T> & { readonly size: number }): Generator<T> {
  let left = elements.size
  for (const element of elements) {
    if (left-- === 0) return
    yield element
  }
}
