import { BadVersionError, ConnectionLossError, NoNodeError, type Client, type Stat } from '@zabra/client/core'
import { nameOf } from '@zabra/client/recipe-kit'
import type { Abortable, Naming } from '../handles/types.ts'
import { Notifier } from '../lock-queue/notifier.ts'
import { contendersInOrder, createParser } from '../lock-queue/contenders.ts'
import { LockQueue } from '../lock-queue/lock-queue.ts'
import { throwIfAborted } from '../lock-queue/turn.ts'
import { writeRequest, type RevokeRequest } from './request.ts'
import {
  abortable,
  checkRecipe,
  milliseconds,
  recipe,
  text,
  trueOrFalse,
  type Rules,
} from '../support/checks.ts'

export interface RevokeOptions extends Abortable, RevokeRequest {
  /** Delete the znode by force after `graceMs` (default: give up). */
  readonly force?: boolean | undefined
  /** Naming scheme of the request (default `recipe`). */
  readonly naming?: Naming | undefined
}

const rules: Rules<RevokeOptions> = {
  ...abortable,
  by: text,
  reason: text,
  graceMs: milliseconds,
  force: trueOrFalse,
  naming: recipe.naming,
}

/** What became of a revocation. */
export type RevokeOutcome = 'released' | 'forced' | 'refused'

/** Recognises the contenders of mutexes and of read/write locks. */
const parseAnyLock = createParser(
  ['lock-', '__lock__', '__WRIT__', 'write-'],
  ['__READ__', 'read-', '__rlock__'],
)

/**
 * Asks the holder of a lock, or all readers that hold it together, to release it, and waits. `lockPath` is the directory
 * of the lock, or the znode of one contender, which may still be waiting. Returns `released` when the znode was deleted
 * or there was none; `refused` when `graceMs` passed; `forced` when this call deleted it then; of several readers the
 * last of these that applies to any. Without `graceMs` it waits until `signal` aborts; the request stays in the znode.
 * Forcing needs the permission to delete below the directory.
 */
export async function revoke(
  client: Client,
  lockPath: string,
  options: RevokeOptions = {},
): Promise<RevokeOutcome> {
  checkRecipe('revoke', client, lockPath, options, rules)
  const paths = await holdersAt(client, lockPath, options.signal)
  const outcomes = await Promise.all(paths.map((path) => revokeOne(client, path, options)))
  return (['refused', 'forced'] as const).find((outcome) => outcomes.includes(outcome)) ?? 'released'
}

async function revokeOne(client: Client, path: string, options: RevokeOptions): Promise<RevokeOutcome> {
  const { signal, force = false, naming = 'recipe', by, reason, graceMs } = options
  const call = signal === undefined ? {} : { signal }
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

/** Returns the path of the contender, or those of the holders of the lock. */
async function holdersAt(
  client: Client,
  lockPath: string,
  signal: AbortSignal | undefined,
): Promise<readonly string[]> {
  if (parseAnyLock(nameOf(lockPath)) !== undefined) return [lockPath]
  const queue = new LockQueue(client, lockPath, parseAnyLock, {})
  const contenders = contendersInOrder((await queue.list({ signal }))?.names ?? [], parseAnyLock)
  const firstWriter = contenders.findIndex(({ isShared }) => !isShared)
  const readers = firstWriter === -1 ? contenders : contenders.slice(0, firstWriter)
  const holders = readers.length > 0 ? readers : contenders.slice(0, 1)
  return holders.map(({ name }) => queue.pathOf(name))
}

/** Waits for the deletion of a znode; returns false on timeout. */
async function waitForDeletion(
  client: Client,
  path: string,
  graceMs: number | undefined,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const notifier = new Notifier(client, signal)
  const call = signal === undefined ? {} : { signal }
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
      notifier.notifyOn(await client.watchOnce(path, 'data', call))
      await notifier.wait()
      notifier.stopWatching()
      if (late) return (await client.exists(path, call)) === undefined
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
      // When the reply is lost, the next read shows the outcome.
      if (!(error instanceof BadVersionError || error instanceof ConnectionLossError)) throw error
    }
  }
}
