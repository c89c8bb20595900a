import { DiskError } from '@zabra/runtime'
import {
  BackupError,
  Catalog,
  readVerification,
  verifyChain,
  verifyPieces,
  type BackupStore,
  type VerificationRecord,
} from '@zabra/server/backup'
import { finding, type Finding } from './finding.ts'
import { hex } from '../text/hex.ts'

const DAY_MS = 86_400_000
const MAX_AGE_MS = 26 * 3_600_000
const MAX_VERIFIED_MS = 8 * DAY_MS

/** Checks the age, the files and the encryption of backups. `now` in milliseconds since 1970. */
export async function* checkBackups(store: BackupStore, now: number): AsyncGenerator<Finding> {
  const where = store.target.url
  let catalog: Catalog
  let verified: VerificationRecord | undefined
  try {
    catalog = await Catalog.read(store)
    verified = await readVerification(store)
  } catch (cause) {
    yield unreachable(where, cause)
    return
  }
  const remedy = 'zabra backup verify shows all; make a new backup with zabra backup now.'
  for (const { name, error: cause } of catalog.bad)
    yield finding('backup-damaged', name, cause.message, remedy)
  const newest = catalog.snapshots.at(-1)
  if (newest === undefined) {
    yield finding('no-backup', where, 'it holds no backup', 'Make one with zabra backup now, on a schedule.')
    return
  }
  for (const { name, problem } of verifyChain(catalog)) yield finding('backup-damaged', name, problem, remedy)
  for (const { after, before } of catalog.gaps)
    yield finding(
      'backup-gap',
      where,
      `moments after ${hex(after)}${before === undefined ? '' : ` and before ${hex(before)}`} cannot be restored: a part of the log is in no backup`,
      'Look for the event backup.gap in the logs of the members, which says what to change.',
    )
  try {
    for await (const { name, defect } of verifyPieces(store, [newest, ...catalog.chainOf(newest).logs]))
      if (defect !== undefined) yield finding('backup-damaged', name, defect.problem, remedy)
  } catch (cause) {
    yield unreachable(where, cause)
  }
  yield* checkVerification(where, verified, now)
  if (verified !== undefined && verified.problem !== null)
    yield finding(
      'backup-unusable',
      verified.snapshot,
      `a server has replayed it at ${new Date(verified.time).toISOString()}: ${verified.problem}`,
      'Run zabra backup verify --deep, and make a new backup with zabra backup now.',
    )
  const hours = Math.floor((now - newest.time) / 3_600_000)
  if (now - newest.time > MAX_AGE_MS)
    yield finding(
      'backup-old',
      where,
      `the newest snapshot is ${hours} hours old`,
      'Run zabra backup now on a schedule, and look why it failed.',
    )
  if (newest.key === null)
    yield finding(
      'backup-plain',
      where,
      'backups are not encrypted',
      'Set backup.encryption.keyFile on the servers, or give --key-file to zabra backup now, and keep the key elsewhere.',
    )
}

/** Returns the finding for an error of the target. Throws any other. */
function unreachable(where: string, cause: unknown): Finding {
  if (!(cause instanceof BackupError) && !(cause instanceof DiskError)) throw cause
  return finding(
    'backup-target',
    where,
    cause.message,
    'Make the target reachable from here, or name another one: until then no server can write backups there either, if it sees the same.',
  )
}

/** Servers verify by replay; what only `zabra backup verify --deep` has replayed is recorded nowhere. */
function* checkVerification(
  where: string,
  verified: VerificationRecord | undefined,
  now: number,
): Generator<Finding> {
  if (verified !== undefined && now - verified.time <= MAX_VERIFIED_MS) return
  yield finding(
    'backup-not-verified',
    where,
    verified === undefined
      ? 'no server has replayed a backup of it'
      : `the last replay of a backup by a server is ${Math.floor((now - verified.time) / DAY_MS)} days old`,
    'Set backup.verify=1d on the servers, or run zabra backup verify --deep on a schedule.',
  )
}
