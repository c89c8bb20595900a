import { formatZxid } from '@zabra/protocol'
import { DiskError, type Clock, type Random } from '@zabra/runtime'
import type { Zxid } from '../core/types.ts'
import { readSmall, type BackupStore } from './catalog.ts'
import { hex, oneChunk, type BackupTarget } from './target.ts'

/** The file that names the member on duty. */
const DUTY = 'duty'
const CLAIM = /^([\w.-]{1,80})(:substitute)? ([\da-f]{16}) \d{1,15} (\d{1,15})(?: 0x([\da-f]{1,14}))?\n$/

/** Time without a look after which a member begins anew to count how long a claim has been the same, in milliseconds. */
const INATTENTION_MS = 20_000
/** The same while the target has all that this member has applied, so that it looks once a minute. */
const QUIET_INATTENTION_MS = 90_000
/** How much longer a claim must have been the same while its holder has nothing to save, and renews it once a minute. */
const QUIET_SILENCE_MS = 120_000

/** How a member claims the duty. Times are in milliseconds. */
export interface ClaimOptions {
  /** How long there must have been no claim. */
  readonly ifFreeMs: number
  /** How long the claim of another member must have been the same. */
  readonly ifSilentMs: number
  /** Whether this member gives way to any that is no substitute. */
  readonly isSubstitute?: boolean
  /** Up to which transaction all are in the target, as far as this member knows. */
  readonly savedUpTo?: Zxid | undefined
  /** What this member has applied: a holder that has saved that renews its claim seldom, since it has nothing to do. */
  readonly applied?: Zxid
  /**
   * Resolves to how much longer this member waits, Infinity to leave the duty alone. It is asked once those times are over, once for
   * each claim, and again when `isSubstitute` changes. A wait stays the same until the member with the claim has made a backup.
   */
  readonly delayMs?: () => Promise<number>
}

/** How much longer a member waits before it claims. */
interface Wait {
  readonly ms: number
  /** Whether the member was a substitute when that was found out. */
  readonly isSubstitute: boolean
}

/** A claim as it was read. */
interface Seen {
  readonly claim: string | undefined
  /** Since when it has been the same, while its holder had something to save. */
  since: number
  /** Since when it has been the same, whatever its holder had to do. */
  unchangedSince: number
  wait?: Wait | undefined
}

/**
 * Decides which of several members writes the backups of a target: the one whose claim is in its file `duty`, and that renews it.
 * Another one takes over when a claim has not changed for a while, and from a substitute at once. Only the clock of the watcher counts,
 * so that clocks may differ. Of several members that find no claim one makes the first. Two members may hold the duty for a moment after
 * they took over at once from a third, since a folder replaces no file by a condition; what both write stays sound, since names differ.
 */
export class BackupDuty {
  readonly #target: BackupTarget
  readonly #clock: Pick<Clock, 'monotonic'>
  readonly #member: string
  /** Names this run of this member. */
  readonly #run: string
  #count = 0
  /** The claim as it was read last, since when it has been the same, and how much longer this member waits before it claims. */
  #seen: Seen | undefined
  /** When the last look ended, on the monotonic clock. */
  #lookedAt = -Infinity
  #isHeld = false
  /** `savedUpTo` in the last claim of this member. */
  #claimedUpTo: Zxid | undefined
  /** Whether the file may hold a claim of this member. */
  #hasClaimed = false
  /** Whether this member has claimed the duty in its last look, and does not know yet whether it has it. */
  #isClaiming = false
  #isRefused = false

  constructor(
    { target }: Pick<BackupStore, 'target'>,
    member: string,
    { clock, random }: { readonly clock: Pick<Clock, 'monotonic'>; readonly random: Random },
  ) {
    this.#target = target
    this.#clock = clock
    this.#member = member
    this.#run = hex(random.bytes(8))
  }

  /** Whether this member had the duty when it last looked. */
  get isHeld(): boolean {
    return this.#isHeld
  }

  /** The member that had the duty then; undefined when none had. */
  get holder(): string | undefined {
    return this.#isHeld ? this.#member : this.#seen?.claim?.split(/[: ]/)[0]
  }

  /** When the member on duty made its last backup, in milliseconds since 1970; 0 when it has made none, or is not known. */
  get lastBackupAt(): number {
    return Number(CLAIM.exec(this.#seen?.claim ?? '')?.[4] ?? 0)
  }

  /** Up to which transaction all were in the target by the last claim; undefined where it does not say so, or was just replaced. */
  get savedUpTo(): Zxid | undefined {
    if (this.#isClaiming) return undefined
    return this.#isHeld ? this.#claimedUpTo : savedUpToOf(this.#seen?.claim)
  }

  /** Whether the target has refused the last claim of this member, as a full one does. */
  get isRefused(): boolean {
    return this.#isRefused
  }

  /** Whether the member on duty gives way to any that is no substitute. */
  get isSubstitute(): boolean {
    return CLAIM.exec(this.#seen?.claim ?? '')?.[2] !== undefined
  }

  /**
   * Renews the claim of this member, with the time of its last backup. Claims the duty where it is free, or held by a substitute or a
   * member that is silent; it has the duty from the next call on, unless another member has claimed it too. Resolves to whether this
   * member has the duty. Rejects when the target cannot be reached.
   */
  async claim(options: ClaimOptions, lastBackupAt: number): Promise<boolean> {
    const unattendedMs = this.#clock.monotonic() - this.#lookedAt
    try {
      return await this.#claim(options, lastBackupAt, unattendedMs)
    } finally {
      this.#lookedAt = this.#clock.monotonic()
    }
  }

  async #claim(options: ClaimOptions, lastBackupAt: number, unattendedMs: number): Promise<boolean> {
    const { ifFreeMs, ifSilentMs, savedUpTo, applied, isSubstitute = false } = options
    const { delayMs = () => Promise.resolve(0) } = options
    this.#isClaiming = this.#isRefused = false
    const claim = await this.#read()
    const now = this.#clock.monotonic()
    if (this.#seen === undefined || this.#seen.claim !== claim) {
      const wait = madeNoBackup(this.#seen?.claim, claim) ? this.#seen?.wait : undefined
      this.#seen = { claim, since: now, unchangedSince: now, wait: wait?.ms === 0 ? undefined : wait }
    }
    const isOwn = this.#isOwn(claim)
    if (!isOwn) {
      this.#isHeld = false
      const isFree = claim === undefined || (!isSubstitute && CLAIM.exec(claim)?.[2] !== undefined)
      // An earlier run of this member renews nothing any more.
      const isOther = CLAIM.exec(claim ?? '')?.[1] !== this.#member
      const hasAll = isOther && applied !== undefined && (savedUpToOf(claim) ?? -1) >= applied
      if (!isFree && (hasAll || unattendedMs > INATTENTION_MS)) this.#seen.since = now
      if (unattendedMs > QUIET_INATTENTION_MS) this.#seen.unchangedSince = now
      const { since, unchangedSince } = this.#seen
      const unchangedMs = Math.max(now - since, now - unchangedSince - QUIET_SILENCE_MS)
      const waited = unchangedMs - (isFree ? ifFreeMs : ifSilentMs)
      if (waited < 0) return false
      if (this.#seen.wait?.isSubstitute !== isSubstitute) {
        this.#seen.wait = { ms: await delayMs(), isSubstitute }
        // Another member may have claimed the duty meanwhile.
        if ((await this.#read()) !== claim) return false
      }
      if (waited < this.#seen.wait.ms) return false
    }
    this.#hasClaimed = true
    const member = `${this.#member}${isSubstitute ? ':substitute' : ''}`
    const upTo = savedUpTo === undefined ? '' : ` 0x${formatZxid(savedUpTo)}`
    const renewed = `${member} ${this.#run} ${++this.#count} ${lastBackupAt}${upTo}\n`
    if (!(await this.#write(new TextEncoder().encode(renewed), claim === undefined))) return false
    this.#claimedUpTo = savedUpTo
    this.#isClaiming = !isOwn
    return (this.#isHeld = isOwn)
  }

  /** Writes a claim. Resolves to false where it was to be the first, and another member was faster. */
  async #write(bytes: Uint8Array, isFirst: boolean): Promise<boolean> {
    // Until the target has taken it.
    this.#isRefused = true
    let isWritten = true
    if (isFirst) isWritten = await this.#target.create(DUTY, bytes)
    else await this.#target.write(DUTY, oneChunk(bytes))
    this.#isRefused = false
    return isWritten
  }

  /** Gives the duty up, so that another member takes it at once. */
  async release(): Promise<void> {
    if (!this.#hasClaimed) return
    this.#isHeld = false
    if (this.#isOwn(await this.#read())) await this.#target.remove(DUTY)
    this.#hasClaimed = false
  }

  #isOwn(claim: string | undefined): boolean {
    return CLAIM.exec(claim ?? '')?.[3] === this.#run
  }

  /** Returns the claim in the file; undefined when there is none. What is no claim counts as one that is not renewed. */
  async #read(): Promise<string | undefined> {
    try {
      const text = new TextDecoder().decode(await readSmall(this.#target, DUTY))
      return CLAIM.test(text) ? text : '? damaged'
    } catch (error) {
      if (error instanceof DiskError && error.code === 'ENOENT') return undefined
      throw error
    }
  }
}

function savedUpToOf(claim: string | undefined): Zxid | undefined {
  const digits = CLAIM.exec(claim ?? '')?.[5]
  return digits === undefined ? undefined : Number.parseInt(digits, 16)
}

/** Returns whether two claims are of the same run of a member, which has made no backup in between. */
function madeNoBackup(before: string | undefined, after: string | undefined): boolean {
  const [first, second] = [before, after].map((claim) => CLAIM.exec(claim ?? '') ?? undefined)
  return first !== undefined && first[3] === second?.[3] && first[4] === second?.[4]
}
