import {
  MultiError,
  NoNodeError,
  SessionExpiredError,
  type Bytes,
  type Client,
  type Stat,
  type WriteOp,
  type WriteResult,
} from '@zabra/client/core'
import { abortError, parentOf } from '@zabra/client/recipe-kit'
import { AmbiguousResultError } from './ambiguous-result.ts'
import { orInDoubt } from './in-doubt.ts'
import {
  ignoreFailure,
  isNewSession,
  isAmbiguous,
  pauses,
  readThroughLosses,
  undefinedIfMissing,
  retryInNewSession,
} from './retry.ts'

/** Attempts to create the parents against a server that keeps removing empty containers. */
const MAX_PARENT_ATTEMPTS = 8

/**
 * A transaction that was applied. `results` is undefined when the reply was lost; `marker` is the stat by which
 * that was resolved.
 */
export interface Committed<T> {
  readonly results: T | undefined
  /**
   * Undefined on servers that return no stat, unless it was requested; also undefined when the marker has gone
   * with its session.
   */
  readonly marker: Stat | undefined
}

export interface CommitOptions {
  readonly signal?: AbortSignal | undefined
  /** Read the stat of the marker if the server does not return it, as Apache servers before 3.9 in a transaction. */
  readonly needsMarkerStat?: boolean | undefined
  /** Mode of missing parents of the marker (default `container`). */
  readonly parents?: 'container' | 'persistent' | undefined
}

/**
 * Applies a transaction exactly once. It also creates a marker, an ephemeral znode with a random tag, which shows
 * whether the transaction was applied when its reply is lost. The caller deletes the marker.
 *
 * A transaction that was applied when the signal aborts is reported as applied, if that can be read within a second. Throws
 * an `AmbiguousResultError` if it cannot, and when the session, and with it the marker, ended before the result could be
 * read.
 */
export async function commitWithMarker<const T extends readonly WriteOp[]>(
  client: Client,
  marker: string,
  operations: T,
  { signal, parents = 'container', needsMarkerStat = false }: CommitOptions = {},
): Promise<Committed<{ [K in keyof T]: WriteResult<T[K]> }>> {
  const tag = client.platform.random.bytes(16)
  const marking = { op: 'create', path: marker, mode: 'ephemeral', data: tag } as const
  const pause = pauses(client, signal)
  for (let tries = 1; ;) {
    const { generation } = client.session
    try {
      const [created, ...results] = await client.multi([marking, ...operations], signal ? { signal } : {})
      const returned = (created as { stat?: Stat | undefined }).stat
      const stat =
        returned ??
        (needsMarkerStat ? await orInDoubt(client, readMarker(client, marker), signal, marker) : undefined)
      return { results: results as { [K in keyof T]: WriteResult<T[K]> }, marker: stat }
    } catch (error) {
      if (isAmbiguous(error)) {
        const search = findMarker(client, { marker, tag, generation }, error)
        const stat = await orInDoubt(client, search, signal, marker).catch((cause: unknown) => {
          ignoreFailure(search.then((found) => found && deleteMarker(client, marker)))
          throw cause
        })
        if (stat !== undefined) return { results: undefined, marker: stat }
        if (signal?.aborted) throw abortError(signal.reason, { operation: 'multi', path: marker })
        await pause()
      } else if (isNoParent(error) && tries++ < MAX_PARENT_ATTEMPTS) {
        const parent = { path: parentOf(marker), mode: parents }
        await retryInNewSession(client, () => client.createMissing([parent], { signal }))
      } else if (!isNewSession(client, error)) throw withShiftedIndex(error)
    }
  }
}

/** The end of the session removes the marker, but not the effect of the transaction. */
async function readMarker(client: Client, marker: string): Promise<Stat | undefined> {
  try {
    return await readThroughLosses(client, (options) => client.exists(marker, options))
  } catch (error) {
    if (isNewSession(client, error)) return undefined
    throw error
  }
}

interface Attempt {
  readonly marker: string
  readonly tag: Bytes
  /** Generation of the session that sent the transaction. */
  readonly generation: number
}

/** Returns the stat of the marker if it exists and is this attempt's. A sync first waits for requests in flight. */
async function findMarker(
  client: Client,
  { marker, tag, generation }: Attempt,
  error: unknown,
): Promise<Stat | undefined> {
  const lost = (cause: unknown): AmbiguousResultError =>
    new AmbiguousResultError(`The session expired, and it is unknown whether ${marker} was created`, {
      path: marker,
      cause,
    })
  if (error instanceof SessionExpiredError || client.session.generation !== generation) throw lost(error)
  let found: { readonly data: Bytes; readonly stat: Stat } | undefined
  try {
    found = await readThroughLosses(client, async (options) => {
      await client.sync(parentOf(marker), options)
      return undefinedIfMissing(client.getData(marker, options))
    })
  } catch (cause) {
    // The error of the transaction says that it may be applied; that of the search does not.
    throw cause instanceof SessionExpiredError ? lost(cause) : error
  }
  if (found !== undefined && sameBytes(found.data, tag)) return found.stat
  if (client.session.generation !== generation) throw lost(error)
  return undefined
}

const sameBytes = (a: Bytes, b: Bytes): boolean =>
  a.length === b.length && a.every((byte, at) => byte === b[at])

const isNoParent = (error: unknown): boolean =>
  error instanceof MultiError && error.index === 0 && error.cause instanceof NoNodeError

/** Renumbers the operations for the caller; the marker gets -1. */
function withShiftedIndex(error: unknown): unknown {
  if (!(error instanceof MultiError)) return error
  const cause = error.cause as ConstructorParameters<typeof MultiError>[2]
  return new MultiError(error.message, error.index - 1, cause)
}

/** Deletes a marker in the background. */
export function deleteMarker(client: Client, marker: string): void {
  ignoreFailure(client.delete(marker, { guaranteed: true, missingOk: true }))
}

/** Returns a random name. */
export const uniqueName = (client: Client): string =>
  [...client.platform.random.bytes(12)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
