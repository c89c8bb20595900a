import { epochOf, formatZxid, MAX_EPOCH } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { ADOPT_ADVICE, RecoveryError } from './errors.ts'
import { Mutex } from './mutex.ts'

const CURRENT = 'currentEpoch'
const ACCEPTED = 'acceptedEpoch'

/**
 * Stores the accepted and the current epoch of a member (disk-format 2.2). They are promises: the member follows no leader of an
 * epoch below `accepted`, and its history is at least that of the leader of `current`. Both only increase, and both are durable
 * before the member reports them.
 */
export class EpochFiles {
  readonly #disk: Disk
  readonly #folder: string
  #accepted: number
  #current: number
  readonly #mutex = new Mutex()

  constructor(disk: Disk, folder: string, accepted: number, current: number) {
    this.#disk = disk
    this.#folder = folder
    this.#accepted = accepted
    this.#current = current
  }

  get accepted(): number {
    return this.#accepted
  }
  get current(): number {
    return this.#current
  }

  /** Raises the accepted epoch; durable when it resolves. Rejects with a RangeError for a lower epoch. */
  accept(epoch: number): Promise<void> {
    return this.#mutex.run(async () => {
      if (await this.#write(ACCEPTED, this.#accepted, epoch)) this.#accepted = epoch
    })
  }

  /** Raises the current epoch, as `accept`. Also rejects when it is above the accepted one. */
  setCurrent(epoch: number): Promise<void> {
    return this.#mutex.run(async () => {
      if (epoch > this.#accepted)
        throw new RangeError(`Expected an epoch up to ${this.#accepted}, the accepted one, got ${epoch}`)
      if (await this.#write(CURRENT, this.#current, epoch)) this.#current = epoch
    })
  }

  async #write(name: string, now: number, epoch: number): Promise<boolean> {
    if (!Number.isSafeInteger(epoch) || epoch < now || epoch > MAX_EPOCH)
      throw new RangeError(`Expected an epoch from ${now} to ${MAX_EPOCH} for ${name}, got ${epoch}`)
    if (epoch === now) return false
    await writeEpoch(this.#disk, `${this.#folder}/${name}`, epoch)
    return true
  }
}

/**
 * Reads the epochs beside a history that ends at `last`, and writes missing files (disk-format 2.3). The rules:
 *
 * 1. Files are missing in a folder that was never used by a member: both epochs are then that of `last`.
 * 2. A crash between the two steps of a sync leaves a history with transactions of an epoch above the current one. Transactions
 *    are logged in order and without gaps, so it holds everything that the leader of that epoch began with: the current epoch
 *    is raised, where Apache ZooKeeper refuses to start. The temporary file that the crash left is not needed for that.
 * 3. This holds only for an epoch that this server has accepted. Otherwise the files do not belong together.
 * 4. The current epoch is never above the accepted one.
 *
 * Rejects with a `RecoveryError`, whose message says what to do.
 */
export async function openEpochFiles(
  disk: Disk,
  logger: Logger,
  folder: string,
  last: Zxid,
): Promise<EpochFiles> {
  const ofHistory = epochOf(last)
  const foundCurrent = await readFoundEpoch(disk, folder, CURRENT)
  const foundAccepted = await readFoundEpoch(disk, folder, ACCEPTED)
  const current = Math.max(foundCurrent ?? 0, ofHistory)
  const accepted = foundAccepted ?? current
  if (ofHistory > accepted)
    throw new RecoveryError(
      `Expected an acceptedEpoch of at least ${ofHistory}, as the last transaction 0x${formatZxid(last)} has it, got ${accepted}`,
      folder,
      `The files come from different servers or times. Bring the right acceptedEpoch back; or, ${ADOPT_ADVICE}.`,
    )
  if (current > accepted)
    throw new RecoveryError(
      `Expected an acceptedEpoch of at least ${current}, the currentEpoch, got ${accepted}`,
      folder,
      `Bring the right files back; or write ${current} into acceptedEpoch, if this server has never accepted a later epoch.`,
    )
  if (foundCurrent !== undefined && foundCurrent < current)
    logger.warn(
      { id: 'recovery.epoch-raised', folder, from: foundCurrent, to: current, lastZxid: formatZxid(last) },
      `Raising currentEpoch from ${foundCurrent} to ${current}, the epoch of the last transaction: a crash prevented the update of the file`,
    )
  // acceptedEpoch first: in the other order a crash could leave a current epoch that was never accepted.
  if (foundAccepted === undefined) await writeEpoch(disk, `${folder}/${ACCEPTED}`, accepted)
  if (foundCurrent !== current) await writeEpoch(disk, `${folder}/${CURRENT}`, current)
  for (const name of [`${CURRENT}.tmp`, `${ACCEPTED}.tmp`])
    if (await disk.exists(`${folder}/${name}`)) await disk.remove(`${folder}/${name}`)
  return new EpochFiles(disk, folder, accepted, current)
}

/** Reads the epoch files of a stopped member. Rejects with a `RecoveryError` for a file that holds no epoch. */
export async function readEpochs(
  disk: Disk,
  folder: string,
): Promise<{ readonly accepted: number | undefined; readonly current: number | undefined }> {
  return {
    accepted: await readFoundEpoch(disk, folder, ACCEPTED),
    current: await readFoundEpoch(disk, folder, CURRENT),
  }
}

async function readFoundEpoch(disk: Disk, folder: string, name: string): Promise<number | undefined> {
  try {
    return await readEpoch(disk, `${folder}/${name}`)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new RecoveryError(
      `Expected an epoch in ${name} (${cause.message})`,
      folder,
      `Bring the file back from a backup; or, ${ADOPT_ADVICE}.`,
      { cause },
    )
  }
}

/** Reads the number in an epoch file, or undefined when the file does not exist. Rejects with a RangeError for other contents. */
async function readEpoch(disk: Disk, path: string): Promise<number | undefined> {
  if (!(await disk.exists(path))) return undefined
  const line = new TextDecoder().decode(await disk.readFile(path)).split(/\r?\n/, 1)[0]!
  const value = Number(line)
  if (!/^\d+$/.test(line) || !Number.isSafeInteger(value)) {
    throw new RangeError(
      `Expected a decimal number in the first line of ${path}, got ${JSON.stringify(line.slice(0, 40))}`,
    )
  }
  return value
}

function writeEpoch(disk: Disk, path: string, epoch: number): Promise<void> {
  return disk.replaceFile(path, new TextEncoder().encode(String(epoch)))
}
