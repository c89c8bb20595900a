import type { Disk, DiskReader } from '@zabra/runtime'

/** What a recovery reads. */
export type RecoveryPhase = 'snapshot' | 'replay'

/** How far a recovery is. */
export interface RecoveryState {
  readonly phase: RecoveryPhase
  /** The share of the bytes that were read, at most 99; never less than before. Undefined before the sizes are known. */
  readonly percent: number | undefined
  /** How long it takes from now on, if it goes on as fast as until now, in seconds. Undefined where too little was read to say. */
  readonly etaSeconds: number | undefined
}

/** How long a recovery has read before it says how long it takes, in milliseconds. */
const ETA_AFTER_MS = 1000
/** The share that it has read by then: that of a small compressed snapshot before a large log says nothing about the pace. */
const MIN_SHARE = 0.01

/** Counts the bytes that a recovery reads from its files, for probes. */
export class RecoveryProgress {
  readonly #now: () => number
  #phase: RecoveryPhase | undefined = 'snapshot'
  #startedAt = 0
  #read = 0
  #total = 0
  #percent = 0

  /** `now` reads the monotonic clock, in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** How far the recovery is that has begun or is to come; undefined once it is over. */
  get state(): RecoveryState | undefined {
    if (this.#phase === undefined) return undefined
    const share = this.#total === 0 ? 0 : this.#read / this.#total
    // Where a snapshot is damaged, there is more to read than was known before.
    this.#percent = Math.max(this.#percent, Math.min(99, Math.floor(share * 100)))
    const elapsed = this.#now() - this.#startedAt
    const leftMs = elapsed * (1 / share - 1)
    return {
      phase: this.#phase,
      percent: this.#total === 0 ? undefined : this.#percent,
      etaSeconds:
        share < MIN_SHARE || elapsed < ETA_AFTER_MS ? undefined : Math.max(0, Math.ceil(leftMs / 1000)),
    }
  }

  /** Counts for a recovery, of one attempt or several. */
  async during<T>(recover: () => Promise<T>): Promise<T> {
    this.#phase = 'snapshot'
    this.#startedAt = this.#now()
    this.#read = this.#total = this.#percent = 0
    try {
      return await recover()
    } finally {
      this.#phase = undefined
    }
  }

  /** Begins a phase, from which on this many bytes are to be read. */
  begin(phase: RecoveryPhase, bytes: number): void {
    if (this.#phase === undefined) return
    this.#phase = phase
    this.#total = this.#read + bytes
  }

  /** Returns a disk for reading that counts what is read of each file, each byte once. */
  counting(disk: Pick<Disk, 'openRead'>): Pick<Disk, 'openRead'> {
    return { openRead: async (path) => this.#countingReader(await disk.openRead(path)) }
  }

  #countingReader(reader: DiskReader): DiskReader {
    let end = 0
    return {
      size: () => reader.size(),
      close: () => reader.close(),
      read: async (into, position) => {
        const read = await reader.read(into, position)
        if (position + read > end) {
          this.#read += position + read - end
          end = position + read
        }
        return read
      },
    }
  }
}
