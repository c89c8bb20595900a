import { fork, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { Feature } from '../simulation/plan.ts'
import { optionsText } from './report.ts'
import {
  batchesOf,
  formatTotals,
  nextSeed,
  seedsIn,
  totalsOf,
  withBatch,
  type CampaignTotals,
  type PlayedBatch,
  type SeedRange,
} from './totals.ts'

/** Seeds that a worker plays before its result is saved. A kill loses at most one batch of each worker. */
const BATCH_SEEDS = 10
const PROGRESS_INTERVAL_MS = 60_000

export interface PlanChoice {
  readonly servers?: number
  readonly minutes?: number
  readonly features?: readonly Feature[]
}

export interface LongCampaignOptions {
  readonly plans: PlanChoice
  /** How many seeds; without it the campaign goes on until it is killed. */
  readonly seeds: number | undefined
  /** The first seed; without it, the one above all that were played. */
  readonly start: number | undefined
  readonly processes: number
  /** The commit by which the seeds add up. */
  readonly commit: string
  /** Holds the totals; a page with the same name and `.md` sums them up. */
  readonly file: string
}

/** What a worker is sent. */
export interface BatchRequest {
  readonly range: SeedRange
  readonly plans: PlanChoice
}

/**
 * Plays seeds in worker processes of low priority and saves the totals after each batch. Plays no seed twice at one commit, so
 * that a campaign that was killed goes on where it was. Resolves to the number of seeds with violations at this commit.
 */
export async function longCampaign(options: LongCampaignOptions): Promise<number> {
  const release = lock(`${options.file}.lock`)
  try {
    return await new LongCampaign(options).run()
  } finally {
    release()
  }
}

class LongCampaign {
  readonly #options: LongCampaignOptions
  readonly #optionsText: string
  readonly #batches: Iterator<SeedRange>
  #totals: CampaignTotals

  constructor(options: LongCampaignOptions) {
    this.#options = options
    this.#optionsText = optionsText(options.plans)
    this.#totals = existsSync(options.file) ? readTotals(options.file) : { commits: [] }
    const start = options.start ?? nextSeed(this.#totals, 1)
    const end = options.seeds === undefined ? Number.MAX_SAFE_INTEGER : start + options.seeds - 1
    this.#batches = batchesOf([start, end], this.#own.played, BATCH_SEEDS)
  }

  get #own() {
    return totalsOf(this.#totals, this.#options.commit, this.#optionsText)
  }

  async run(): Promise<number> {
    const progress = setInterval(() => this.#print(), PROGRESS_INTERVAL_MS)
    try {
      await Promise.all(Array.from({ length: this.#options.processes }, () => this.#work()))
    } finally {
      clearInterval(progress)
    }
    this.#save()
    this.#print()
    return this.#own.failures.length
  }

  /** Has one worker play batches until there are no more. */
  async #work(): Promise<void> {
    let worker: ChildProcess | undefined
    for (let next = this.#batches.next(); next.done !== true; next = this.#batches.next()) {
      worker ??= fork(process.argv[1]!, ['--worker'])
      const played = await play(worker, { range: next.value, plans: this.#options.plans })
      if (played === undefined) {
        worker = undefined
        this.#add(endedWithout(next.value, this.#optionsText))
      } else this.#add(played)
    }
    worker?.disconnect()
  }

  #add(batch: PlayedBatch): void {
    this.#totals = withBatch(this.#totals, this.#options.commit, this.#optionsText, batch)
    this.#save()
    for (const { replay, checker, message } of batch.outcome.failures)
      console.log(`VIOLATION ${checker}: ${message.slice(0, 500)}\n  replay: ${replay} --trace trace.txt`)
  }

  /** Replaces the files at once, so that a kill leaves the totals before or after the batch. */
  #save(): void {
    const { file } = this.#options
    replaceFile(file, `${JSON.stringify(this.#totals, undefined, 1)}\n`)
    replaceFile(file.replace(/(\.json)?$/, '.md'), formatTotals(this.#totals))
  }

  #print(): void {
    const { commit, played, eventCount, processorMs, failures } = this.#own
    const rate = Math.round((eventCount * 1000) / Math.max(1, processorMs))
    console.log(
      `campaign: ${seedsIn(played)} seeds at ${commit}, ${eventCount} events, ${rate} a second of processor time, ${failures.length} violations`,
    )
  }
}

/** Resolves to the result of a batch; to undefined when the worker ends without one. */
function play(worker: ChildProcess, request: BatchRequest): Promise<PlayedBatch | undefined> {
  return new Promise((resolve) => {
    const onMessage = (message: unknown): void => settle(message as PlayedBatch)
    const onExit = (): void => settle(undefined)
    const settle = (batch: PlayedBatch | undefined): void => {
      worker.off('message', onMessage)
      worker.off('exit', onExit)
      resolve(batch)
    }
    worker.on('message', onMessage)
    worker.on('exit', onExit)
    worker.send(request)
  })
}

/** The result of a batch whose worker ended: a violation, since a run must not end its process. */
function endedWithout(range: SeedRange, options: string): PlayedBatch {
  const [from, to] = range
  const failure = {
    seed: from,
    checker: 'process',
    message: `The process that played the seeds ${from} to ${to} ended without a result`,
    replay: `pnpm sim --start ${from} --seeds ${to - from + 1} ${options}`.trimEnd(),
  }
  return {
    range,
    outcome: { eventCount: 0, virtualMs: 0, counts: {}, failures: [failure] },
    processorMs: 0,
  }
}

function readTotals(file: string): CampaignTotals {
  const text = readFileSync(file, 'utf8')
  try {
    const totals = JSON.parse(text) as CampaignTotals
    if (Array.isArray(totals.commits)) return totals
  } catch {
    // The same error as for other contents.
  }
  throw new Error(
    `Expected the totals of a campaign in ${file}. Move the file away, or choose another with --file`,
  )
}

function replaceFile(file: string, text: string): void {
  writeFileSync(`${file}.tmp`, text)
  renameSync(`${file}.tmp`, file)
}

/** Takes the lock of a file. Throws when a living process has it. Returns a function that gives it back. */
function lock(path: string): () => void {
  try {
    const descriptor = openSync(path, 'wx')
    writeFileSync(descriptor, String(process.pid))
    closeSync(descriptor)
    return () => rmSync(path, { force: true })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const owner = Number(readFileSync(path, 'utf8'))
  if (owner > 0 && isRunning(owner))
    throw new Error(
      `Expected no other campaign with this file, but process ${owner} has ${path}. Choose another --file`,
    )
  rmSync(path)
  return lock(path)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
