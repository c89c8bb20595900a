import { BadVersionError, ConnectionLossError, NoNodeError, type Client, type Stat } from '@zabra/client/core'
import type { Abortable, Naming } from '../handles/types.ts'
import { Notifier } from '../lock-queue/notifier.ts'
import { contendersInOrder } from '../lock-queue/contenders.ts'
import { LockQueue } from '../lock-queue/lock-queue.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { parseLock } from '../mutex/names.ts'
import { writeRequest, type RevokeRequest } from './request.ts'

export interface RevokeOptions extends Abortable, RevokeRequest {
  /** Delete the znode by force after `graceMs` (default: give up). */
  readonly force?: boolean
  /** Naming scheme of the request (default `recipe`). */
  readonly naming?: Naming
}

/**
 * Asks the holder of a lock to release it, and waits. `lockPath` is the directory of the lock, or the znode of one
 * contender, which may still be waiting. Returns `released` when the znode was deleted or there was none;
 * `refused` when `graceMs` passed; `forced` when this call deleted it then. Without `graceMs` it waits until
 * `signal` aborts; the request stays in the znode. Forcing needs the permission to delete below the directory.
 */
export async function revoke(
  client: Client,
  lockPath: string,
  options: RevokeOptions = {},
): Promise<'released' | 'forced' | 'refused'> {
  const { signal, force = false, naming = 'recipe', by, reason, graceMs } = options
  const call = signal === undefined ? {} : { signal }
  const path = await contenderAt(client, lockPath, signal)
  if (path === undefined) return 'released'
  const request = writeRequest(naming, {
    ...(by === undefined ? {} : { by }),
    ...(reason === undefined ? {} : { reason }),
    ...(graceMs === undefined ? {} : { graceMs }),
  })
  try {
    const stat = await client.unordered().setData(path, request, { ...call, idempotent: true })
    if (await waitForDeletion(client, path, graceMs, signal)) return 'released'
    if (!force) return 'refused'
    await deleteRequested(client, path, stat, call)
    return 'forced'
  } catch (error) {
    if (error instanceof NoNodeError) return 'released'
    throw error
  }
}

async function contenderAt(
  client: Client,
  lockPath: string,
  signal: AbortSignal | undefined,
): Promise<string | undefined> {
  if (parseLock(lockPath.slice(lockPath.lastIndexOf('/') + 1)) !== undefined) return lockPath
  const queue = new LockQueue(client, lockPath, parseLock, {})
  const [holder] = contendersInOrder((await queue.list(signal))?.names ?? [], parseLock)
  return holder === undefined ? undefined : queue.pathOf(holder.name)
}

/** Waits for the deletion of a znode; returns false on timeout. */
async function waitForDeletion(
  client: Client,
  path: string,
  graceMs: number | undefined,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const notifier = new Notifier(client, signal)
  let late = false
  const cancel =
    graceMs === undefined
      ? () => {}
      : client.platform.clock.after(graceMs, 'grace of a revocation', () => {
          late = true
          notifier.notify()
        })
  try {
    for (;;) {
      throwIfAborted(signal, path)
      notifier.notifyOn(await client.watchOnce(path, 'data', signal === undefined ? {} : { signal }))
      await notifier.wait()
      await notifier.stopWatching()
      if (late) return (await client.exists(path)) === undefined
    }
  } catch (error) {
    if (error instanceof NoNodeError) return true
    throw error
  } finally {
    cancel()
    notifier.close()
  }
}

/** Deletes exactly the znode that was asked, even if its data changed meanwhile. */
async function deleteRequested(
  client: Client,
  path: string,
  asked: Stat,
  call: { signal?: AbortSignal },
): Promise<void> {
  for (;;) {
    const stat = await client.exists(path, call)
    if (stat === undefined || stat.czxid !== asked.czxid) return
    try {
      return await client.unordered().delete(path, { ...call, version: stat.version, missingOk: true })
    } catch (error) {
      // When the reply is lost, the next read tells the outcome.
      if (!(error instanceof BadVersionError || error instanceof ConnectionLossError)) throw error
    }
  }
}
