import { EMPTY, remainingCallOptions } from './call-options.ts'
import type { ZooKeeperClient } from './client.ts'
import { NodeExistsError, NoNodeError } from './errors.ts'
import { backoff } from './retry.ts'
import type {
  Bytes,
  CreateOptions,
  CreateResult,
  MkdirpOptions,
  Ordered,
  SetDataOptions,
  Stat,
} from './types.ts'

/** Tries against somebody who goes on removing what is needed. */
const MAX_ATTEMPTS = 8

/** Makes a path and what is missing above it. `/` makes the chroot itself. */
export async function mkdirp(view: ZooKeeperClient, path: string, options: MkdirpOptions): Promise<void> {
  const { mode = 'container', acl } = options
  const part = remainingCallOptions(options, view.platform.clock)
  const create = { mode, idempotent: true, ...(acl === undefined ? {} : { acl }) }
  const from = path === '/' ? view.withoutChroot() : view
  const ensure = async (at: string): Promise<void> => {
    if (at === '' || at === '/') return
    for (let tries = 1; ; tries++) {
      try {
        await from.createOnce(at, EMPTY, { ...create, ...part() })
        return
      } catch (error) {
        if (error instanceof NodeExistsError) return
        const above = at.slice(0, at.lastIndexOf('/'))
        if (!(error instanceof NoNodeError) || above === '' || tries === MAX_ATTEMPTS) throw error
        // What was made a moment ago is gone again: somebody removes what is empty.
        if (tries > 1) await backoff(view, tries)
        await ensure(above)
      }
    }
  }
  await ensure(path === '/' ? view.chrootPath : path)
}

/** Parents may vanish between two tries: an empty container is the server's to remove. */
export async function createWithParents(
  view: ZooKeeperClient,
  path: string,
  data: Bytes | null,
  options: CreateOptions,
): Promise<CreateResult> {
  const { parents, ...rest } = options
  const part = remainingCallOptions(options, view.platform.clock)
  const mode = parents === 'persistent' ? 'persistent' : 'container'
  for (let tries = 1; ; tries++) {
    try {
      return await view.create(path, data, { ...rest, ...part() })
    } catch (error) {
      const parent = path.slice(0, path.lastIndexOf('/'))
      if (!(error instanceof NoNodeError) || parent === '' || tries === MAX_ATTEMPTS) throw error
      if (tries > 1) await backoff(view, tries)
      await mkdirp(view, parent, { ...part(), mode, ...(options.acl ? { acl: options.acl } : {}) })
    }
  }
}

/** Goes on with a create when a write found no znode, and with a write when the create found one. */
export async function setDataOrCreate(
  view: ZooKeeperClient,
  written: Promise<Stat & Ordered>,
  path: string,
  data: Bytes | null,
  options: SetDataOptions,
): Promise<Stat & Ordered> {
  const { version = -1, idempotent = false } = options
  const part = remainingCallOptions(options, view.platform.clock)
  for (let done = written, tries = 1; ; done = view.setData(path, data, { idempotent, ...part() }), tries++) {
    try {
      return await done
    } catch (error) {
      if (!(error instanceof NoNodeError) || version !== -1) throw error
    }
    try {
      const { stat, order } = await view.create(path, data, { idempotent, ...part(), parents: true })
      return { ...stat, order }
    } catch (error) {
      if (!(error instanceof NodeExistsError) || tries === MAX_ATTEMPTS) throw error
      if (tries > 1) await backoff(view, tries)
    }
  }
}
