import { epochOf, formatZxid, MAX_EPOCH } from '@zabra/protocol'
import type { Disk, Logger } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { RecoveryError } from './errors.ts'
import { readEpoch, writeEpoch } from './epoch-numbers.ts'

const CURRENT = 'currentEpoch'
const ACCEPTED = 'acceptedEpoch'

/**
 * The two promises of a member: no leader below `accepted` is followed, and the history is that of the leader of `current`,
 * or behind it. Both only rise, and both are durable before anybody hears of them (`acceptedEpoch`, `currentEpoch`).
 */
export class EpochFiles {
  readonly #disk: Disk
  readonly #folder: string
  #accepted: number
  #current: number
  #last: Promise<unknown> = Promise.resolve()

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

  /** Durable when it resolves. Rejects with a RangeError when the epoch is lower than the one promised. */
  accept(epoch: number): Promise<void> {
    return this.#inTurn(async () => {
      if (await this.#write(ACCEPTED, this.#accepted, epoch)) this.#accepted = epoch
    })
  }

  /** The same for the current epoch, which is never above the accepted one. */
  setCurrent(epoch: number): Promise<void> {
    return this.#inTurn(async () => {
      if (epoch > this.#accepted)
        throw new RangeError(`Expected an epoch up to ${this.#accepted}, the accepted one, got ${epoch}`)
      if (await this.#write(CURRENT, this.#current, epoch)) this.#current = epoch
    })
  }

  #inTurn(step: () => Promise<void>): Promise<void> {
    const done = this.#last.then(step)
    this.#last = done.catch(() => {})
    return done
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
 * Reads the epochs beside a history that ends at `last`, and writes what is missing. The rules:
 *
 * 1. Missing files are those of a directory that was no member's: both epochs are then the one of `last`.
 * 2. A history with transactions of an epoch above the current one is what a crash leaves between the two steps of a
 *    synchronisation. Since transactions are logged in order and without gaps, it holds all that the leader of that epoch
 *    began with: the current epoch is raised, where Apache ZooKeeper refuses to start. The temporary file of the write that
 *    the crash cut short is not needed for that.
 * 3. That holds only for an epoch that this server has accepted. Else the files do not belong together.
 * 4. The current epoch is never above the accepted one.
 *
 * Rejects with a `RecoveryError` that says what to do.
 */
export async function openEpochFiles(
  disk: Disk,
  logger: Logger,
  folder: string,
  last: Zxid,
): Promise<EpochFiles> {
  const ofHistory = epochOf(last)
  const foundCurrent = await epochIn(disk, folder, CURRENT)
  const foundAccepted = await epochIn(disk, folder, ACCEPTED)
  const current = Math.max(foundCurrent ?? 0, ofHistory)
  const accepted = foundAccepted ?? current
  if (ofHistory > accepted)
    throw new RecoveryError(
      `Expected an acceptedEpoch of at least ${ofHistory}, as the last transaction 0x${formatZxid(last)} has it, got ${accepted}`,
      folder,
      'The files were put together from several servers or times. Bring the right acceptedEpoch back; or set this directory aside, so that the server gets everything from its leader.',
    )
  if (current > accepted)
    throw new RecoveryError(
      `Expected an acceptedEpoch of at least ${current}, the currentEpoch, got ${accepted}`,
      folder,
      `Bring the right files back; or write ${current} into acceptedEpoch, if this server never took part in anything later.`,
    )
  if (foundCurrent !== undefined && foundCurrent < current)
    logger.warn(
      { folder, from: foundCurrent, to: current, lastZxid: formatZxid(last) },
      `Raising currentEpoch from ${foundCurrent} to ${current}, the epoch of the last transaction: a crash came between the two`,
    )
  // The promise first: the other way round a crash would leave a current epoch that was never accepted.
  if (foundAccepted === undefined) await writeEpoch(disk, `${folder}/${ACCEPTED}`, accepted)
  if (foundCurrent !== current) await writeEpoch(disk, `${folder}/${CURRENT}`, current)
  for (const name of [`${CURRENT}.tmp`, `${ACCEPTED}.tmp`])
    if (await disk.exists(`${folder}/${name}`)) await disk.remove(`${folder}/${name}`)
  return new EpochFiles(disk, folder, accepted, current)
}

async function epochIn(disk: Disk, folder: string, name: string): Promise<number | undefined> {
  try {
    return await readEpoch(disk, `${folder}/${name}`)
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new RecoveryError(
      `Expected an epoch in ${name} (${cause.message})`,
      folder,
      'Bring the file back from a backup; or set this directory aside, so that the server gets everything from its leader.',
      { cause },
    )
  }
}
