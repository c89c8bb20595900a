import { formatZxid } from '@zabra/protocol'
import type { Platform } from '@zabra/runtime'
import {
  Catalog,
  manifestName,
  readVerification,
  verifyDeep,
  writeVerification,
  type BackupStore,
  type VerificationRecord,
} from '../backup/index.ts'
import { memoryCheck, pauseAfter } from '../persistence/index.ts'
import type { ServerSettings } from '../settings/index.ts'

/** Longest time in which a verification holds the event loop, in milliseconds. */
const SLICE_MS = 4
/** Time after a verification that could not be made before the next attempt, in milliseconds. */
const RETRY_MS = 3_600_000
/** Part of a limit of memory that a verification leaves free. */
const SPARE = 0.15

/** Says that a verification was ended because the server stops or lost the duty. */
class VerificationStopped extends Error {}

/** Says that the memory for a second tree is missing. */
class MemoryMissing extends Error {}

/** Verifies the newest backup of a target by replay, again and again, beside the work of the server. */
export class BackupVerification {
  readonly #store: BackupStore
  readonly #platform: Platform
  readonly #settings: Pick<ServerSettings, 'backupVerifyMs'>
  #last: VerificationRecord | undefined
  #hasRead = false
  /** The piece of the snapshot that was verified last, by this server since its start. */
  #verified: string | undefined
  /** When the next attempt may begin, on the monotonic clock. */
  #notBefore = -Infinity
  #running: Promise<void> | undefined
  #isStopped = false

  constructor(store: BackupStore, platform: Platform, settings: Pick<ServerSettings, 'backupVerifyMs'>) {
    this.#store = store
    this.#platform = platform
    this.#settings = settings
  }

  /** The last result, by any member; undefined before the first, and on a server that is not on duty. */
  get last(): VerificationRecord | undefined {
    return this.#last
  }

  /** Begins a verification if one is due. Call it while this server has the duty. */
  runIfDue(catalog: Catalog | undefined): void {
    if (this.#settings.backupVerifyMs === 0 || this.#running !== undefined || this.#isStopped) return
    if (catalog === undefined || catalog.snapshots.length === 0) return
    if (this.#platform.clock.monotonic() < this.#notBefore) return
    this.#running = this.#run(catalog)
      .catch((error: unknown) => this.#onFailure(error))
      .finally(() => (this.#running = undefined))
  }

  /** Ends a verification that runs, and forgets the last result: another member may have the duty. */
  async end(): Promise<void> {
    this.#hasRead = false
    this.#last = undefined
    this.#isStopped = true
    await this.#running
    this.#isStopped = false
  }

  async #run(catalog: Catalog): Promise<void> {
    if (!this.#hasRead) this.#last = await readVerification(this.#store)
    this.#hasRead = true
    const { clock, compression, logger } = this.#platform
    const age = clock.wall() - (this.#last?.time ?? -Infinity)
    // A snapshot that was made since may put right what was wrong.
    const isRemedied =
      typeof this.#last?.problem === 'string' && catalog.snapshots.at(-1)!.piece.name !== this.#verified
    // A time in the future is that of another clock.
    if (age >= 0 && age < this.#settings.backupVerifyMs && !isRemedied) return
    const { url } = this.#store.target
    if (this.#lacksMemory()) throw new MemoryMissing()
    const chain = catalog.newestChain()
    const begun = clock.monotonic()
    const checkMemory = memoryCheck(this.#platform, () => new MemoryMissing())
    const { upTo, defect } = await verifyDeep(this.#store, chain, {
      compression,
      toEnd: true,
      pause: pauseAfter(clock, SLICE_MS, () => {
        if (this.#isStopped) throw new VerificationStopped()
        checkMemory()
      }),
    })
    const snapshot = manifestName(chain.snapshot)
    if (defect !== undefined) {
      const { snapshots, logs } = await Catalog.read(this.#store)
      const present = new Set([...snapshots, ...logs].map(({ piece }) => piece.name))
      // Pruned or merged meanwhile, or replaced by another one of the same transaction.
      if ([chain.snapshot, ...chain.logs].some(({ piece }) => !present.has(piece.name))) return
    }
    this.#verified = chain.snapshot.piece.name
    const time = Math.floor(clock.wall())
    this.#last = { time, snapshot, problem: defect?.problem ?? null }
    const facts = {
      target: url,
      snapshot,
      upTo: `0x${formatZxid(upTo)}`,
      ms: Math.round(clock.monotonic() - begun),
    }
    if (defect === undefined) logger.info(facts, 'Verified the newest backup by replay')
    else logger.error({ ...facts, reason: defect.problem }, 'The newest backup cannot be restored')
    await writeVerification(this.#store, this.#last).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error)
      logger.warn({ target: url, reason }, 'The result of a verification could not be written to the target')
    })
  }

  /** Whether a second tree may not fit into the memory of the process. */
  #lacksMemory(): boolean {
    const { system } = this.#platform
    const heap = system.heap?.()
    const limits = system.memoryLimits?.()
    if (heap === undefined || limits === undefined) return false
    const resident = system.residentMemory()
    return (
      2 * heap.used > limits.heap * (1 - SPARE) ||
      resident + heap.used + heap.external > limits.process * (1 - SPARE)
    )
  }

  #onFailure(error: unknown): void {
    if (error instanceof VerificationStopped) return
    const { clock, logger } = this.#platform
    const { url } = this.#store.target
    if (error instanceof MemoryMissing) {
      this.#notBefore = clock.monotonic() + this.#settings.backupVerifyMs
      const sentence =
        'The backup was not verified: the memory for a second tree is missing. Run zabra backup verify --deep on another machine, and set backup.verify=0'
      return logger.warn({ target: url }, sentence)
    }
    this.#notBefore = clock.monotonic() + RETRY_MS
    const reason = error instanceof Error ? error.message : String(error)
    logger.warn({ target: url, reason }, 'A backup could not be verified; trying again in an hour')
  }
}
