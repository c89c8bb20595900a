import type { Random } from '@zabra/runtime'
import { callOptions } from './calls.ts'
import type { View } from './client.ts'
import {
  AbortedError,
  NoNodeError,
  OperationTimeoutError,
  SessionExpiredError,
  ZooKeeperError,
} from './errors.ts'
import type { Bytes, CreateOptions, CreateResult, Stat } from './types.ts'

/**
 * A create whose znode can be found again when its reply is lost: the name begins with a number that nobody else draws.
 * Finding it takes a sync first, since the server of the next connection may not have applied it yet.
 *
 * A caller that gives up leaves nothing behind: what its request may have made is removed in the background.
 */
export async function createProtected(
  view: View,
  path: string,
  data: Bytes | null,
  options: CreateOptions,
): Promise<CreateResult> {
  const slash = path.lastIndexOf('/')
  const parent = slash <= 0 ? '/' : path.slice(0, slash)
  const ephemeral = options.mode?.startsWith('ephemeral') ?? false
  const mark = `_c_${uuid(view.ports.random)}-`
  const marked = `${path.slice(0, slash + 1)}${mark}${path.slice(slash + 1)}`
  const find: Find = { view, parent, mark, ephemeral, epoch: view.session.epoch }
  const { protected: _protected, parents: _parents, ...rest } = options
  for (;;) {
    try {
      return await view.createOnce(marked, data, { ...rest, retry: false })
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || !error.maybeApplied) throw error
      if (error instanceof SessionExpiredError && ephemeral) throw error
      if (options.retry === false || isGivenUp(error)) {
        void clean(find)
        throw error
      }
    }
    try {
      const found = await search(find, callOptions(options))
      if (found !== undefined) return found
    } catch (error) {
      void clean(find)
      throw error
    }
  }
}

interface Find {
  readonly view: View
  readonly parent: string
  readonly mark: string
  readonly ephemeral: boolean
  /** The session that made it, by its number. */
  readonly epoch: number
}

const isGivenUp = (error: unknown): boolean =>
  error instanceof AbortedError || error instanceof OperationTimeoutError

async function search(
  find: Find,
  options: ReturnType<typeof callOptions>,
): Promise<CreateResult | undefined> {
  const { view, parent, mark, ephemeral } = find
  await view.sync(parent, options)
  const { children } = await view.getChildren(parent, options)
  const name = children.find((child) => child.startsWith(mark))
  if (name === undefined) return undefined
  const path = parent === '/' ? `/${name}` : `${parent}/${name}`
  const stat: (Stat & { order: number }) | undefined = await view.exists(path, options)
  if (stat === undefined || (ephemeral && stat.ephemeralOwner !== view.session.id)) return undefined
  const { order, ...own } = stat
  return { path, stat: own, order }
}

/** Removes what the request may have made, as soon as that can be told: until then, or until its session is over. */
async function clean(find: Find): Promise<void> {
  const { view, ephemeral, epoch } = find
  try {
    while (!ephemeral || view.session.epoch === epoch) {
      const found = await search(find, {})
      if (found === undefined) return
      await view.delete(found.path, { missingOk: true })
      return
    }
  } catch (error) {
    // The session or the client is over, or the parent is gone: so is the znode, or nobody here can remove it.
    if (!(error instanceof ZooKeeperError) || error instanceof NoNodeError) return
    if (error instanceof SessionExpiredError && !ephemeral) await clean(find)
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
