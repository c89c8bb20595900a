import { parentOf } from '@zabra/protocol'
import { wrongOptions } from './call-checks.ts'
import { EMPTY, remainingCallOptions } from './call-options.ts'
import type { InternalClient } from './internal-client.ts'
import { NodeExistsError, NoNodeError } from './errors.ts'
import { backoff } from './retry.ts'
import type {
  ACL,
  Data,
  CallOptions,
  CreateOptions,
  CreateResult,
  MissingNode,
  Ordered,
  SetDataOptions,
  Stat,
} from './types.ts'

/** Attempts before giving up when another client keeps removing the parents. */
const MAX_ATTEMPTS = 8

/** The options of znodes that are created empty, as parents of others. */
interface ParentOptions extends CallOptions {
  readonly mode: 'container' | 'persistent'
  readonly acl?: readonly ACL[] | undefined
}

/**
 * Calls `create` for a znode, and creates its missing parents between two calls. A parent may vanish meanwhile: another client, or the container
 * manager of the server, removes empty znodes.
 */
async function withParents<T>(
  client: InternalClient,
  path: string,
  options: ParentOptions,
  create: (call: CallOptions) => Promise<T>,
): Promise<T> {
  const { mode, acl } = options
  const nextOptions = remainingCallOptions(options, client.platform.clock)
  for (let attempt = 1; ; attempt++) {
    try {
      return await create(nextOptions())
    } catch (error) {
      const parent = parentOf(path)
      if (!(error instanceof NoNodeError) || parent === '/' || attempt === MAX_ATTEMPTS) throw error
      if (attempt > 1) await backoff(client, attempt, nextOptions())
      await createParent(client, parent, { mode, acl, ...nextOptions() })
    }
  }
}

/**
 * Creates an empty znode and its missing parents, unless it exists. The creates are unordered: an empty znode shows
 * nothing that an earlier write must precede.
 */
async function createParent(client: InternalClient, path: string, options: ParentOptions): Promise<void> {
  const { mode, acl } = options
  const creator = client.unordered()
  try {
    await withParents(client, path, options, (call) =>
      creator.createOnce(path, EMPTY, { mode, acl, idempotent: true, ...call }),
    )
  } catch (error) {
    if (!(error instanceof NodeExistsError)) throw error
  }
}

/** Creates a znode and its missing parents. */
export async function createWithParents(
  client: InternalClient,
  path: string,
  options: CreateOptions,
): Promise<CreateResult> {
  const { parents, ...rest } = options
  const mode = parents === 'persistent' ? 'persistent' : 'container'
  return withParents(client, path, { ...rest, mode }, (call) => client.create(path, { ...rest, ...call }))
}

/** Creates the znodes that do not exist, one after the other. The creates are unordered. */
export async function createMissing(
  client: InternalClient,
  nodes: readonly (string | MissingNode)[],
  options: CallOptions,
): Promise<void> {
  const nextOptions = remainingCallOptions(options, client.platform.clock)
  for (const node of nodes) {
    const wanted = typeof node === 'string' ? { path: node } : node
    const wrong = wrongOptions('missingNode', wanted ?? null, 'createMissing')
    if (wrong !== undefined) throw wrong
    const { path, data = EMPTY, mode = 'persistent', acl }: MissingNode = wanted
    // The root of a client with a chroot is a znode like others.
    const isRoot = path === '/'
    if (isRoot && client.chrootPath === '') continue
    const creator = isRoot ? client.withoutChroot() : client
    const create = {
      mode,
      parents: mode === 'persistent' ? mode : true,
      idempotent: true,
      acl,
    } as const
    try {
      await creator
        .unordered()
        .create(isRoot ? client.chrootPath : path, { ...create, ...nextOptions(), data })
    } catch (error) {
      if (!(error instanceof NodeExistsError)) throw error
    }
  }
}

/** Alternates between a create, when the write found no znode, and a write, when the create found one. */
export async function setDataOrCreate(
  client: InternalClient,
  firstWrite: Promise<Stat & Ordered>,
  path: string,
  data: Data,
  options: SetDataOptions,
): Promise<Stat & Ordered> {
  const { version = -1, idempotent = false } = options
  const nextOptions = remainingCallOptions(options, client.platform.clock)
  for (
    let write = firstWrite, attempt = 1;
    ;
    write = client.setData(path, data, { idempotent, ...nextOptions() }), attempt++
  ) {
    try {
      return await write
    } catch (error) {
      if (!(error instanceof NoNodeError) || version !== -1) throw error
    }
    try {
      const { stat, order } = await client.create(path, {
        data,
        idempotent,
        ...nextOptions(),
        parents: true,
      })
      return { ...stat, order }
    } catch (error) {
      if (!(error instanceof NodeExistsError) || attempt === MAX_ATTEMPTS) throw error
      if (attempt > 1) await backoff(client, attempt, nextOptions())
    }
  }
}
