import { childPath, nameOf, parentOf } from '@zabra/protocol'
import type { Random } from '@zabra/runtime'
import { remainingCallOptions } from './call-options.ts'
import { withCallerLimits } from './caller-limits.ts'
import type { InternalClient } from './internal-client.ts'
import {
  NoNodeError,
  abortError,
  connectionLossError,
  terminalErrorFor,
  isAbandonedByCaller,
  SessionExpiredError,
  UsageError,
  ZooKeeperError,
  type ErrorContext,
} from './errors.ts'
import { retryForever } from './retry.ts'
import type { CallOptions, CreateOptions, CreateResult, Data } from './types.ts'

/**
 * Creates a znode under a unique name prefix, by which a znode whose reply was lost can be found again. The search
 * begins with a sync, since the next server may not have applied the create yet.
 *
 * When the caller gives up, a znode that the request may have created is removed in the background.
 */
export async function createProtected(
  client: InternalClient,
  path: string,
  data: Data,
  options: CreateOptions,
): Promise<CreateResult> {
  const parent = parentOf(path)
  const { protected: prefixOption, parents: _parents, ...create } = options
  const id = uuid(client.platform.random)
  const prefix = (typeof prefixOption === 'function' ? prefixOption : curatorPrefix)(id)
  // With another prefix the znode of another client could be taken for the one whose reply was lost. The last part of a UUID is the
  // same without hyphens.
  if (!String(prefix).includes(id.slice(-12)))
    throw new UsageError('Expected a prefix with the UUID', { path, operation: 'create' })
  const prefixedPath = childPath(parent, prefix + nameOf(path))
  const search: OrphanSearch = {
    // The caller may close its client while the search runs.
    client: client.clone(),
    parent,
    prefix,
    isEphemeral: options.mode?.startsWith('ephemeral') ?? false,
  }
  const nextOptions = remainingCallOptions(options, client.platform.clock)
  for (;;) {
    let lossError: ZooKeeperError
    try {
      return await client.createOnce(prefixedPath, data, { ...create, ...nextOptions() }, true)
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || !error.maybeApplied) throw error
      if (error instanceof SessionExpiredError && search.isEphemeral) throw error
      if (options.retry === false || isAbandonedByCaller(error)) {
        void removeOrphan(search)
        throw error
      }
      lossError = error
    }
    try {
      // Between two tries it waits for a connection, however long, unlike the caller.
      const found = await withCallerLimits(
        client.platform.clock,
        () => retryForever(search.client, () => findCreated(search, nextOptions())),
        createErrorContext(lossError),
        nextOptions(),
      )
      if (found !== undefined) return found
    } catch (cause) {
      // Without a parent there is no znode: the next try reports that, unless the parent exists by then.
      if (cause instanceof NoNodeError) continue
      // An ephemeral znode was removed with its session, but other clients may have seen it.
      if (cause instanceof SessionExpiredError && search.isEphemeral)
        throw terminalErrorFor(cause, createErrorContext(lossError))
      void removeOrphan(search)
      throw unknownOutcomeError(lossError, cause)
    }
  }
}

interface OrphanSearch {
  readonly client: InternalClient
  readonly parent: string
  readonly prefix: string
  readonly isEphemeral: boolean
}

const curatorPrefix = (id: string): string => `_c_${id}-`

const createErrorContext = ({ path }: ZooKeeperError): ErrorContext => ({
  operation: 'create',
  path,
  maybeApplied: true,
})

/** Returns the error for a create that may have been applied and could not be searched for. */
function unknownOutcomeError(lossError: ZooKeeperError, cause: unknown): ZooKeeperError {
  const context = { ...createErrorContext(lossError), cause }
  if (isAbandonedByCaller(cause)) return abortError((cause as Error).cause, context)
  return connectionLossError({
    ...context,
    reason: 'the reply was lost, and the search for the znode failed',
  })
}

async function findCreated(search: OrphanSearch, options: CallOptions): Promise<CreateResult | undefined> {
  const { client, parent, prefix, isEphemeral } = search
  await client.sync(parent, options)
  const { children } = await client.getChildren(parent, options)
  const name = children.find((child) => child.startsWith(prefix))
  if (name === undefined) return undefined
  const path = childPath(parent, name)
  const stat = await client.exists(path, options)
  if (stat === undefined || (isEphemeral && stat.ephemeralOwner !== client.session.id)) return undefined
  const { order, ...bareStat } = stat
  return { path, stat: bareStat, order }
}

/**
 * Removes the znode that the request may have created, as soon as it can be found. An ephemeral one is removed with
 * its session anyway.
 */
async function removeOrphan(search: OrphanSearch): Promise<void> {
  const { client, isEphemeral } = search
  const { generation } = client.session
  for (;;) {
    try {
      return await retryForever(client, async () => {
        if (isEphemeral && client.session.generation !== generation) return
        const found = await findCreated(search, {})
        if (found !== undefined) await client.delete(found.path, { missingOk: true })
      })
    } catch (error) {
      // Retry only when a new session follows: otherwise the client or the parent is gone, or the ACL forbids the
      // delete.
      if (!(error instanceof SessionExpiredError) || client.sharedSession.terminalError !== undefined) return
    }
  }
}

/** Returns a random UUID in the form that Curator uses. */
function uuid(random: Random): string {
  const bytes = random.bytes(16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
