import { Histogram } from './histogram.ts'
import type { Zxid } from './types.ts'

/** Proposals in flight whose times are kept; a power of two. Later ones overwrite the oldest, which then are not measured. */
const SLOTS = 4096
/** Syncs of the log, and commits, whose times are kept. */
const BATCHES = 64
/** One write in so many is measured for the metrics; a power of two. */
const SAMPLE = 32

/** Milliseconds that a write spends in each stage, on the server of its client. Together they are the time until its reply. */
export interface StageTimes {
  /** From the arrival of the request to the begin of its preparation; on a learner until it is forwarded to the leader. */
  readonly queue: number
  /** Until the transaction is logged and proposed. 0 on a learner, whose leader does that. */
  readonly prepare: number
  /** Until the log of this server begins to write the transaction; on a learner with the way to the leader and back. */
  readonly proposal: number
  /** Until it is durable here. 0, as `proposal` is, where a quorum had it before. */
  readonly sync: number
  /** Until this server knows that it is committed. */
  readonly commit: number
  /** Until it is applied. */
  readonly apply: number
  /** Until the reply is handed to the socket. */
  readonly reply: number
}

/**
 * Measures the stages of writes. Only the begin of a stage is kept for each write, and the times of syncs and commits for each batch of
 * them; histograms get one write in 32, which costs under 1 % of a write. Nothing is allocated for the others.
 */
export class WriteStages {
  readonly latencies: Readonly<Record<keyof StageTimes, Histogram>> = {
    queue: new Histogram(),
    prepare: new Histogram(),
    proposal: new Histogram(),
    sync: new Histogram(),
    commit: new Histogram(),
    apply: new Histogram(),
    reply: new Histogram(),
  }
  /** From the proposal until it is durable here, and until it is committed. */
  readonly untilDurable = new Histogram()
  readonly untilCommitted = new Histogram()
  /** From the commit until the reply is handed to the socket. */
  readonly untilAnswered = new Histogram()
  /** From the commit until it is applied, of writes of other servers. */
  readonly untilAppliedOfOthers = new Histogram()
  /** To hand a transaction that is prepared to the log and to all learners. */
  readonly proposing = new Histogram()
  /** To prepare the end of a session: of each one. */
  readonly endOfSession = new Histogram()
  readonly #zxids = new Float64Array(SLOTS)
  readonly #proposed = new Float64Array(SLOTS)
  /** When the preparation of the measured ones began. */
  readonly #begun = new Float64Array(SLOTS / SAMPLE)
  readonly #syncs = new Batches()
  readonly #commits = new Batches()
  /** When the writes were committed and applied whose replies are not sent. */
  #unsent: { readonly committedAt: number; readonly appliedAt: number }[] = []

  /** Whether the stages of a write are measured for the metrics. */
  isSampled(zxid: Zxid): boolean {
    return (zxid & (SAMPLE - 1)) === 0
  }

  /** Records that a write was proposed, or forwarded to the leader. All times are on the monotonic clock. */
  proposed(zxid: Zxid, at: number): void {
    const slot = zxid & (SLOTS - 1)
    this.#zxids[slot] = zxid
    this.#proposed[slot] = at
  }

  /** Records when the preparation of a write began that is measured; call `proposed` too. */
  begun(zxid: Zxid, at: number): void {
    this.#begun[(zxid & (SLOTS - 1)) / SAMPLE] = at
  }

  /** Records that the log has written all up to a transaction that was not durable before. */
  synced(last: Zxid, begunAt: number, endedAt: number): void {
    this.#syncs.add(last, begunAt, endedAt)
  }

  committed(last: Zxid, at: number): void {
    this.#commits.add(last, at, at)
  }

  /** Adds the times from the proposals of transactions until now to a histogram. */
  addAges(first: Zxid, count: number, now: number, ages: Histogram): void {
    for (let zxid = first; zxid < first + count; zxid++) {
      const slot = zxid & (SLOTS - 1)
      if (this.#zxids[slot] === zxid) ages.add(Math.max(0, now - this.#proposed[slot]!))
    }
  }

  /** Measures a write that is applied, whose reply is sent before the next call of `sent`. */
  applied(zxid: Zxid, startedAt: number, now: number): void {
    const times = this.of(zxid, startedAt, now)
    const { latencies } = this
    latencies.queue.add(times.queue)
    latencies.prepare.add(times.prepare)
    latencies.proposal.add(times.proposal)
    latencies.sync.add(times.sync)
    latencies.commit.add(times.commit)
    latencies.apply.add(times.apply)
    this.untilDurable.add(times.proposal + times.sync)
    this.untilCommitted.add(times.proposal + times.sync + times.commit)
    this.#unsent.push({ committedAt: now - times.apply, appliedAt: now })
  }

  /** Measures a write of another server that is applied. */
  appliedOfOther(zxid: Zxid, now: number): void {
    const commit = this.#commits.indexOf(zxid)
    if (commit !== -1) this.untilAppliedOfOthers.add(Math.max(0, now - this.#commits.ends[commit]!))
  }

  /** Whether replies wait for `sent`. */
  get hasUnsent(): boolean {
    return this.#unsent.length > 0
  }

  sent(now: number): void {
    for (const { committedAt, appliedAt } of this.#unsent) {
      this.latencies.reply.add(Math.max(0, now - appliedAt))
      this.untilAnswered.add(Math.max(0, now - committedAt))
    }
    this.#unsent = []
  }

  /** Begins a new part of the window over which metrics report percentiles. */
  rotate(): void {
    for (const values of [...Object.values(this.latencies), ...Object.values(this)])
      if (values instanceof Histogram) values.rotate()
  }

  /** Returns the times of a write that was applied at `appliedAt`; `reply` ends at `sentAt`. */
  of(zxid: Zxid, startedAt: number, appliedAt: number, sentAt = appliedAt): StageTimes {
    const slot = zxid & (SLOTS - 1)
    const isKnown = this.#zxids[slot] === zxid
    const proposed = between(startedAt, isKnown ? this.#proposed[slot]! : startedAt, appliedAt)
    const begun =
      isKnown && this.isSampled(zxid) ? between(startedAt, this.#begun[slot / SAMPLE]!, proposed) : proposed
    const commit = this.#commits.indexOf(zxid)
    const committed = commit === -1 ? appliedAt : between(proposed, this.#commits.ends[commit]!, appliedAt)
    const sync = this.#syncs.indexOf(zxid)
    const isLate = sync === -1 || this.#syncs.begins[sync]! > committed
    const syncing = isLate ? proposed : between(proposed, this.#syncs.begins[sync]!, committed)
    const durable = isLate ? proposed : between(syncing, this.#syncs.ends[sync]!, committed)
    return {
      queue: begun - startedAt,
      prepare: proposed - begun,
      proposal: syncing - proposed,
      sync: durable - syncing,
      commit: committed - durable,
      apply: appliedAt - committed,
      reply: Math.max(0, sentAt - appliedAt),
    }
  }
}

const between = (low: number, value: number, high: number): number => Math.max(low, Math.min(value, high))

/** Keeps when the last batches of transactions began and ended. */
class Batches {
  readonly #last = new Float64Array(BATCHES).fill(-1)
  readonly begins = new Float64Array(BATCHES)
  readonly ends = new Float64Array(BATCHES)
  #next = 0

  add(last: Zxid, begin: number, end: number): void {
    const index = this.#next
    this.#last[index] = last
    this.begins[index] = begin
    this.ends[index] = end
    this.#next = (index + 1) % BATCHES
  }

  /** Returns the index of the batch of a transaction: the oldest one that does not end before it; -1 without any. */
  indexOf(zxid: Zxid): number {
    let found = -1
    for (let age = 1; age <= BATCHES; age++) {
      const index = (this.#next - age + BATCHES) % BATCHES
      if (this.#last[index]! < zxid) break
      found = index
    }
    return found
  }
}
