import { Catalog, readVerification, verifyChain, verifyPieces, type BackupStore } from '@zabra/server/backup'
import { finding, type Finding } from './finding.ts'

const MAX_AGE_MS = 26 * 3_600_000

/** Checks the age, the files and the encryption of backups. `now` in milliseconds since 1970. */
export async function* checkBackups(store: BackupStore, now: number): AsyncGenerator<Finding> {
  const where = store.target.url
  const catalog = await Catalog.read(store)
  const remedy = 'zabra backup verify shows all; make a new backup with zabra backup now.'
  for (const { name, error: cause } of catalog.bad)
    yield finding('backup-damaged', name, cause.message, remedy)
  const newest = catalog.snapshots.at(-1)
  if (newest === undefined) {
    yield finding('no-backup', where, 'it holds no backup', 'Make one with zabra backup now, on a schedule.')
    return
  }
  for (const { name, problem } of verifyChain(catalog)) yield finding('backup-damaged', name, problem, remedy)
  for await (const { name, defect } of verifyPieces(store, [newest, ...catalog.chainOf(newest).logs]))
    if (defect !== undefined) yield finding('backup-damaged', name, defect.problem, remedy)
  const verified = await readVerification(store)
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
