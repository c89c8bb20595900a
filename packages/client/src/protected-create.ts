import type { Random } from '@zabra/runtime'
import { remainingCallOptions } from './call-options.ts'
import type { ZooKeeperClient } from './client.ts'
import {
  NoNodeError,
  abortError,
  connectionLossError,
  terminalErrorFor,
  isAbandonedByCaller,
  SessionExpiredError,
  ZooKeeperError,
  type ErrorContext,
} from './errors.ts'
import { retryForever } from './retry.ts'
import type { Bytes, CallOptions, CreateOptions, CreateResult } from './types.ts'

/**
 * A create whose znode can be found again when its reply is lost: the name begins with a number that nobody else draws.
 * Finding it takes a sync first, since the server of the next connection may not have applied it yet.
 *
 * A caller that gives up leaves nothing behind: what its request may have made is removed in the background.
 */
export async function createProtected(
  view: ZooKeeperClient,
  path: string,
  data: Bytes | null,
  options: CreateOptions,
): Promise<CreateResult> {
  const slash = path.lastIndexOf('/')
  const { protected: named, parents: _parents, ...create } = options
  const mark = (typeof named === 'function' ? named : curatorPrefix)(uuid(view.platform.random))
  const marked = `${path.slice(0, slash + 1)}${mark}${path.slice(slash + 1)}`
  const find: OrphanSearch = {
    // The caller may close its view while what it left behind is looked for.
    client: view.clone(),
    parent: slash <= 0 ? '/' : path.slice(0, slash),
    prefix: mark,
    isEphemeral: options.mode?.startsWith('ephemeral') ?? false,
  }
  const part = remainingCallOptions(options, view.platform.clock)
  for (;;) {
    let lost: ZooKeeperError
    try {
      return await view.createOnce(marked, data, { ...create, ...part() }, true)
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || !error.maybeApplied) throw error
      if (error instanceof SessionExpiredError && find.isEphemeral) throw error
      if (options.retry === false || isAbandonedByCaller(error)) {
        void removeOrphan(find)
        throw error
      }
      lost = error
    }
    try {
      const found = await retryForever(find.client, () => findCreated(find, part()))
      if (found !== undefined) return found
    } catch (cause) {
      // Where there is no parent there is no znode: the next try says so, if nobody makes the parent meanwhile.
      if (cause instanceof NoNodeError) continue
      // What it may have made has gone with its session; others may have seen it.
      if (cause instanceof SessionExpiredError && find.isEphemeral)
        throw terminalErrorFor(cause, createErrorContext(lost))
      void removeOrphan(find)
      throw unknownOutcomeError(lost, cause)
    }
  }
}

interface OrphanSearch {
  readonly client: ZooKeeperClient
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

/** The create may have been carried out, and looking for it has failed. */
function unknownOutcomeError(lost: ZooKeeperError, cause: unknown): ZooKeeperError {
  const facts = { ...createErrorContext(lost), cause }
  if (isAbandonedByCaller(cause)) return abortError((cause as Error).cause, facts)
  return connectionLossError({
    ...facts,
    reason: 'the reply was lost, and the znode could not be looked for',
  })
}

async function findCreated(find: OrphanSearch, options: CallOptions): Promise<CreateResult | undefined> {
  const { client: view, parent, prefix: mark, isEphemeral: ephemeral } = find
  await view.sync(parent, options)
  const { children } = await view.getChildren(parent, options)
  const name = children.find((child) => child.startsWith(mark))
  if (name === undefined) return undefined
  const path = parent === '/' ? `/${name}` : `${parent}/${name}`
  const stat = await view.exists(path, options)
  if (stat === undefined || (ephemeral && stat.ephemeralOwner !== view.session.id)) return undefined
  const { order, ...own } = stat
  return { path, stat: own, order }
}

/** Removes what the request may have made, as soon as that can be told. An ephemeral one goes with its session anyway. */
async function removeOrphan(find: OrphanSearch): Promise<void> {
  const { client: view, isEphemeral: ephemeral } = find
  const { epoch } = view.session
  for (;;) {
    try {
      return await retryForever(view, async () => {
        if (ephemeral && view.session.epoch !== epoch) return
        const found = await findCreated(find, {})
        if (found !== undefined) await view.delete(found.path, { missingOk: true })
      })
    } catch (error) {
      // Only a session that is followed by another one is worth another try: else the client or the parent is gone, or
      // nobody here may remove it.
      if (!(error instanceof SessionExpiredError) || view.sharedSession.terminalError !== undefined) return
    }
  }
}

/** A random UUID, in the form that Curator uses too. */
function uuid(random: Random): string {
  const bytes = random.bytes(16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
