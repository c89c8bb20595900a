import {
  AbortedError,
  MultiError,
  NoNodeError,
  OperationTimeoutError,
  SessionExpiredError,
  type Bytes,
  type Client,
  type Stat,
  type WriteOp,
  type WriteResult,
} from '@zabra/client/core'
import { AmbiguousResultError } from './ambiguous.ts'
import { inBackground, isNewSession, isUnclear, orMissing, throughSessions } from './errors.ts'

/** Tries against a server that removes an empty container again and again. */
const TRIES = 8

/** A transaction was carried out. Without `results` its reply was lost, and `mark` is how it was found. */
export interface Committed<T> {
  readonly results: T | undefined
  /** Unknown on servers that do not tell it, unless it was asked for; and when it is gone already with its session. */
  readonly mark: Stat | undefined
}

export interface CommitOptions {
  readonly signal?: AbortSignal | undefined
  /** The mark is needed: read it where the server does not tell of it, as Apache's before 3.9 in a transaction. */
  readonly needMark?: boolean
  /** What missing parents of the mark become (default `container`). */
  readonly parents?: 'container' | 'persistent'
}

/**
 * Carries out a transaction exactly once. It also makes a znode that holds what nobody else would write, the mark, which
 * tells of a lost reply what became of the transaction. The mark is ephemeral, and left for the caller to delete.
 *
 * A signal that aborts once the request is on its way comes too late: what was carried out is told as done. Throws an
 * `AmbiguousResultError` when the session, and with it the mark, ended before anybody could look.
 */
export async function commitMarked<const T extends readonly WriteOp[]>(
  client: Client,
  mark: string,
  operations: T,
  { signal, parents = 'container', needMark = false }: CommitOptions = {},
): Promise<Committed<{ [K in keyof T]: WriteResult<T[K]> }>> {
  const tag = client.platform.random.bytes(16)
  const marking = { op: 'create', path: mark, mode: 'ephemeral', data: tag } as const
  for (let tries = 1; ;) {
    const { generation: epoch } = client.session
    try {
      const [made, ...results] = await client.multi([marking, ...operations], signal ? { signal } : {})
      const told = (made as { stat?: Stat }).stat
      const stat = told ?? (needMark ? await readMark(client, mark) : undefined)
      return { results: results as { [K in keyof T]: WriteResult<T[K]> }, mark: stat }
    } catch (error) {
      if (isUnclear(error)) {
        const stat = await fate(client, { mark, tag, epoch }, error)
        if (stat !== undefined) return { results: undefined, mark: stat }
        if (isGivenUp(error)) throw error
      } else if (isNoParent(error) && tries++ < TRIES) {
        const options = { mode: parents, ...(signal && { signal }) } as const
        await throughSessions(client, () => client.mkdirp(parentOf(mark), options))
      } else if (!isNewSession(client, error)) throw shifted(error)
    }
  }
}

/** A session that ends meanwhile takes the mark along; what was carried out stays so. */
async function readMark(client: Client, mark: string): Promise<Stat | undefined> {
  try {
    return await client.exists(mark)
  } catch (error) {
    if (isNewSession(client, error)) return undefined
    throw error
  }
}

interface Attempt {
  readonly mark: string
  readonly tag: Bytes
  /** The session that made it, by its number. */
  readonly epoch: number
}

/** The mark, if it is there and ours, now that whatever was on its way has arrived. */
async function fate(
  client: Client,
  { mark, tag, epoch }: Attempt,
  error: unknown,
): Promise<Stat | undefined> {
  const lost = (cause: unknown): AmbiguousResultError =>
    new AmbiguousResultError(`The session ended before it could be told whether ${mark} was made`, {
      path: mark,
      cause,
    })
  if (error instanceof SessionExpiredError || client.session.generation !== epoch) throw lost(error)
  try {
    await client.sync(parentOf(mark))
    const found = await orMissing(client.getData(mark))
    if (found !== undefined && sameBytes(found.data, tag)) return found.stat
    if (client.session.generation !== epoch) throw lost(error)
    return undefined
  } catch (cause) {
    throw cause instanceof SessionExpiredError ? lost(cause) : cause
  }
}

const sameBytes = (a: Bytes, b: Bytes): boolean =>
  a.length === b.length && a.every((byte, at) => byte === b[at])

const isGivenUp = (error: unknown): boolean =>
  error instanceof AbortedError || error instanceof OperationTimeoutError

const isNoParent = (error: unknown): boolean =>
  error instanceof MultiError && error.index === 0 && error.cause instanceof NoNodeError

/** The positions of the caller's operations; that of the mark is -1. */
function shifted(error: unknown): unknown {
  if (!(error instanceof MultiError)) return error
  const cause = error.cause as ConstructorParameters<typeof MultiError>[2]
  return new MultiError(error.message, error.index - 1, cause)
}

/** Deletes a mark that has served. */
export function dropMark(client: Client, mark: string): void {
  inBackground(client.delete(mark, { guaranteed: true, missingOk: true }))
}

/** The path above. */
export const parentOf = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf('/')))

/** A name that nobody else draws. */
export const uniqueName = (client: Client): string =>
  [...client.platform.random.bytes(12)].map((byte) => byte.toString(16).padStart(2, '0')).join('')
