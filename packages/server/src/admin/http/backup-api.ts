import { counterOf, formatZxid } from '@zabra/protocol'
import { DiskError, type HttpResponse } from '@zabra/runtime'
import { digestText, encodeLog } from '../../backup/index.ts'
import type { Zxid } from '../../core/types.ts'
import { DamageError, snapshotsIn, type RawTxn } from '../../persistence/index.ts'
import type { AdminTarget } from '../admin-target.ts'
import { json, problem, type ApiCall, type ApiRoute } from './api-route.ts'
import { snapshotResponse, takeSnapshot } from './snapshot-command.ts'

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
    statuses: [200, 400, 404],
    run: sendSnapshot,
  },
  {
    path: '/api/v1/log',
    method: 'GET',
    role: 'backup',
    summary:
      'Sends the committed transactions after the zxid `after` as a log file. `zabra-up-to`, `zabra-nodes` and `zabra-digest` describe the tree after the last of them.',
    statuses: [200, 400, 410, 503],
    run: sendLog,
  },
]

async function takeOne({ target }: ApiCall): Promise<HttpResponse> {
  // Between two roles the tree may hold transactions that were never committed.
  if (servedTree(target) === undefined) return notServing(target)
  const taken = await takeSnapshot(target)
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
  const tree = servedTree(target)
  if (tree === undefined) return notServing(target)
  await new Promise<void>((resolve) => tree.whenConsistent(resolve))
  // No await from here to the digest: they belong together.
  const upTo = lastTransaction(target, tree.lastZxid, after)
  const headers = {
    'content-type': 'application/octet-stream',
    'cache-control': 'no-store',
    'zabra-up-to': `0x${formatZxid(upTo)}`,
    'zabra-nodes': String(tree.nodeCount),
    'zabra-digest': digestText(tree) ?? 'none',
  }
  if (after < target.logRange.after) return gone(after)
  const cursor = target.readHistory(after, Math.max(after, upTo))
  try {
    const first = await cursor.next()
    return { status: 200, headers, body: closing(cursor, encodeLog(withFirst(first, cursor))) }
  } catch (error) {
    await cursor.return?.()
    if (error instanceof DamageError) return gone(after)
    throw error
  }
}

/**
 * Returns the last committed transaction. The zxid of a tree at the begin of an epoch is no transaction: the last one is of an earlier
 * epoch, and `after` itself where it is at that begin.
 */
function lastTransaction({ logRange }: AdminTarget, applied: Zxid, after: Zxid): Zxid {
  if (counterOf(applied) > 0) return applied
  const last = logRange.epochEnds.findLast((end) => end <= applied) ?? logRange.after
  return after <= applied ? Math.max(last, after) : last
}

/** The tree of a server that follows a quorum; undefined for any other. */
function servedTree({ service }: AdminTarget) {
  return service === undefined || service.isReadOnly ? undefined : service.tree
}

const notServing = ({ role }: AdminTarget): HttpResponse =>
  problem(503, 'The server serves no clients', `It is ${role}. Ask again when /readyz answers 200.`)

const gone = (after: Zxid): HttpResponse =>
  problem(
    410,
    'The log is gone',
    `The server has no log after 0x${formatZxid(after)} any more. Start from a snapshot.`,
  )

async function* withFirst(
  first: IteratorResult<RawTxn>,
  rest: AsyncIterableIterator<RawTxn>,
): AsyncGenerator<RawTxn> {
  if (first.done === true) return
  yield first.value
  yield* rest
}

/** Returns chunks whose end, also before the first, closes a cursor: until then files are not purged. */
function closing(
  cursor: AsyncIterableIterator<RawTxn>,
  chunks: AsyncGenerator<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const iterator: AsyncIterator<Uint8Array> = {
    next: () => chunks.next(),
    async return() {
      await cursor.return?.()
      return chunks.return(undefined)
    },
  }
  return { [Symbol.asyncIterator]: () => iterator }
}
