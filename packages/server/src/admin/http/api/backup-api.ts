import { formatZxid } from '@zabra/protocol'
import { DiskError, type HttpResponse } from '@zabra/runtime'
import { MAX_FEATURE_LEVEL } from '../../../core/quorum/index.ts'
import { snapshotsIn } from '../../../persistence/index.ts'
import { RestoreRefusal, type AdminTarget } from '../../admin-target.ts'
import type { BackupReport } from '../../backup-report.ts'
import { NotServingError, readLog, servedTree } from '../../local-source.ts'
import { json, passingProblem, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import { leaderAdvice } from './leader-advice.ts'
import { EmptyBodyError, RestoreTooLargeError, type RestoreState } from '../restore-command.ts'
import { snapshotResponse, takeSnapshot } from '../snapshot-command.ts'

const OCTETS = 'application/octet-stream'
const ZXID = /^0x[\da-f]{1,14}$/

/** The operations from which a backup is made. */
export const backupRoutes: readonly ApiRoute[] = [
  {
    path: '/api/v1/snapshots',
    method: 'POST',
    role: 'backup',
    summary: 'Takes a snapshot in the data folder, and answers with the name and size of its file.',
    statuses: [200, 500, 503],
    run: takeOne,
  },
  {
    path: '/api/v1/snapshots/content',
    method: 'GET',
    role: 'backup',
    summary: 'Sends the snapshot `file` of the data folder.',
    query: { file: { type: 'string' } },
    type: OCTETS,
    statuses: [200, 400, 404],
    run: sendSnapshot,
  },
  {
    path: '/api/v1/log',
    method: 'GET',
    role: 'backup',
    summary:
      'Sends the committed transactions after the zxid `after` as a log file. `zabra-up-to`, `zabra-nodes` and `zabra-digest` describe the tree after the last of them.',
    query: { after: { type: 'string', pattern: '^0x[0-9a-f]{1,14}$' } },
    type: OCTETS,
    statuses: [200, 400, 410, 503],
    run: sendLog,
  },
  {
    path: '/api/v1/backups',
    method: 'GET',
    role: 'view',
    summary:
      'Describes the backups that the server writes: for each target the member on duty, the last backup, failures.',
    statuses: [200],
    run: ({ target }) => json(200, { targets: target.backups?.reports().map(described) ?? [] }),
  },
  {
    path: '/api/v1/backups',
    method: 'POST',
    role: 'backup',
    summary:
      'Begins a backup with a snapshot, on the member on duty. Waits up to four seconds where no member has the duty yet.',
    statuses: [202, 404, 409, 503],
    run: ({ target }) => beginBackup(target),
  },
  {
    path: '/api/v1/restore',
    method: 'POST',
    role: 'admin',
    summary:
      'Replaces all data by the snapshot in the body: those of the whole ensemble at its leader, or of a standalone server. Answers once the snapshot is received. `level` is the feature level of the backup, above which nothing is replaced where it is not finalized.',
    query: { level: { type: 'integer', minimum: 0, maximum: MAX_FEATURE_LEVEL, default: 0 } },
    bodyType: OCTETS,
    statuses: [202, 400, 409, 413, 507],
    run: beginRestore,
  },
  {
    path: '/api/v1/restore',
    method: 'GET',
    role: 'view',
    summary: 'Says what has become of the last snapshot that was sent to this server to replace all data.',
    statuses: [200],
    run: ({ restores }) => describeRestore(restores.state),
  },
]

async function beginRestore(call: ApiCall): Promise<HttpResponse> {
  const { target, request, restores } = call
  const level = Number(request.query.get('level') ?? 0)
  if (!Number.isInteger(level) || level < 0 || level > MAX_FEATURE_LEVEL)
    return problem(
      400,
      'The level is not understood',
      `Expected level=n with n from 0 to ${MAX_FEATURE_LEVEL}.`,
    )
  if (level > target.features.finalized)
    return problem(
      409,
      'The backup has a higher feature level',
      `Expected a backup of at most level ${target.features.finalized}, which is finalized here, got one of level ${level}: members that may still go back cannot read it. Run zabra cluster finalize --level ${level} first.`,
    )
  try {
    const { done } = await restores.begin(target, request)
    // GET reports the outcome.
    done.catch(() => {})
    return json(202, {})
  } catch (error) {
    if (error instanceof RestoreRefusal)
      return problem(409, 'The data cannot be replaced by this server now', await refusalOf(error, call))
    if (error instanceof RestoreTooLargeError)
      return problem(error.status, 'The snapshot is too large', error.message)
    if (error instanceof EmptyBodyError) return problem(400, 'The body is empty', error.message)
    throw error
  }
}

/** A follower refuses, and so does its leader where that runs Apache ZooKeeper. */
async function refusalOf({ message }: RestoreRefusal, call: ApiCall): Promise<string> {
  const { role, leader } = call.target
  if (leader === undefined || (role !== 'following' && role !== 'observing')) return message
  const advice =
    'Let Zabra servers take the place of all members that run it (https://github.com/zabra/zabra/blob/main/docs/migrate.md), or restore to the folder of each while none runs (zabra restore --to).'
  return `Only the leader replaces data. ${await leaderAdvice(call, advice)}`
}

function describeRestore(state: RestoreState): HttpResponse {
  if (state.state !== 'done') return json(200, state)
  return json(200, { state: 'done', zxid: `0x${formatZxid(state.lastZxid)}` })
}

function described({ url, lastBackupAt, intervalMs, contents, verified, ...report }: BackupReport): object {
  const { isOnDuty, member, isRunning, failures, problem } = report
  return {
    url,
    onDuty: isOnDuty,
    member: member ?? null,
    running: isRunning,
    lastBackup: lastBackupAt === undefined ? null : new Date(lastBackupAt).toISOString(),
    intervalSeconds: intervalMs / 1000,
    failures,
    problem: problem ?? null,
    verified: verified === undefined ? null : new Date(verified.time).toISOString(),
    verificationProblem: verified?.problem ?? null,
    bytes: contents?.bytes ?? null,
    snapshots: contents?.snapshots ?? null,
  }
}

/** Seconds after which to ask again while no member has the duty. */
const DUTY_SECONDS = 10

async function beginBackup({ backups, settings }: AdminTarget): Promise<HttpResponse> {
  if (backups === undefined)
    return problem(404, 'The server writes no backups', 'Set backup.target, and restart the server.')
  if ((await backups.runNow()) > 0) return json(202, {})
  const reports = backups.reports()
  const undecided = reports.filter(({ isDecided }) => !isDecided)
  if (undecided.length > 0) return noDuty(undecided, settings)
  const members = reports.map(({ url, member }) => `member ${member} for ${url}`)
  return problem(409, 'Another member has the duty', `Send the request to ${members.join(', ')}.`)
}

function noDuty(
  targets: readonly BackupReport[],
  { backupMember }: Pick<AdminTarget['settings'], 'backupMember'>,
): HttpResponse {
  const urls = targets.map(({ url }) => url).join(', ')
  const failed = targets.find((target) => target.problem !== undefined)
  const reason =
    failed === undefined
      ? `One takes it within half a minute of a start, or of the last sign of the one before${backupMember === 'any' ? '' : `; backup.member=${backupMember} leaves it to some`}.`
      : `${failed.url} cannot be used: ${failed.problem}.`
  return passingProblem(
    503,
    'No member has the duty yet',
    `No member writes backups to ${urls} now. ${reason} Ask again in ${DUTY_SECONDS} s; GET /api/v1/backups names the member.`,
    DUTY_SECONDS,
  )
}

async function takeOne({ target }: ApiCall): Promise<HttpResponse> {
  // Between two roles the tree may hold transactions that were never committed.
  if (servedTree(target) === undefined) return notServing(target)
  const taken = await takeSnapshot(target)
  if (servedTree(target) === undefined) return notServing(target)
  if (taken === undefined)
    return problem(
      500,
      'The snapshot could not be taken',
      'The log of the server gives the reason. Make space on its disk, and try again.',
    )
  const { path, headers } = taken
  const file = path.slice(path.lastIndexOf('/') + 1)
  return json(200, {
    file,
    zxid: headers['last_zxid'],
    bytes: Number(headers['snapshot_size']),
  })
}

async function sendSnapshot({ target, request }: ApiCall): Promise<HttpResponse> {
  const { disk } = target.platform
  const file = request.query.get('file') ?? ''
  if (snapshotsIn([file]).length === 0)
    return problem(400, 'The file is not understood', 'Expected file to be the name of a snapshot.')
  const path = `${target.directories.snapshots}/${file}`
  try {
    return await snapshotResponse(disk, { path, headers: { snapshot_size: String(await disk.size(path)) } })
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== 'ENOENT') throw error
    return problem(404, 'The snapshot is missing', `There is no ${file}. It was removed: take another one.`)
  }
}

async function sendLog({ target, request }: ApiCall): Promise<HttpResponse> {
  const given = request.query.get('after') ?? ''
  if (!ZXID.test(given))
    return problem(400, 'The zxid is not understood', 'Expected after to be a zxid, such as 0x100000001.')
  const after = Number.parseInt(given.slice(2), 16)
  const log = await readLog(target, after).catch((error: unknown) => {
    if (error instanceof NotServingError) return error
    throw error
  })
  if (log instanceof NotServingError) return notServing(target)
  if (log === undefined)
    return problem(
      410,
      'The log is gone',
      `The server has no log after 0x${formatZxid(after)} any more. Start from a snapshot.`,
    )
  const headers = {
    'content-type': OCTETS,
    'cache-control': 'no-store',
    'zabra-up-to': `0x${formatZxid(log.upTo)}`,
    'zabra-nodes': String(log.nodes),
    'zabra-digest': log.digest ?? 'none',
  }
  return { status: 200, headers, body: log.chunks }
}

const notServing = ({ role }: AdminTarget): HttpResponse =>
  problem(503, 'The server serves no clients', `It is ${role}. Ask again when /readyz answers 200.`)
