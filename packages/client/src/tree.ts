import { EMPTY, partOptions } from './calls.ts'
import { toServer } from './chroot.ts'
import type { View } from './client.ts'
import { NodeExistsError, NoNodeError, NotEmptyError } from './errors.ts'
import { backOff } from './insist.ts'
import type {
  Bytes,
  CallOptions,
  Client,
  CreateOptions,
  CreateResult,
  MkdirpOptions,
  Ordered,
  SetDataOptions,
  Stat,
} from './types.ts'

/** Requests in flight at a time when a whole tree is at stake. */
const WINDOW = 256
/** Rounds against somebody who goes on creating what is being deleted. */
const ROUNDS = 8

/** Makes a path and what is missing above it. `/` makes the chroot itself. */
export async function mkdirp(view: View, path: string, options: MkdirpOptions): Promise<void> {
  const { mode = 'container', acl } = options
  const part = partOptions(options, view.ports.clock)
  const create = { mode, idempotent: true, ...(acl === undefined ? {} : { acl }) }
  const from = path === '/' ? view.absolute() : view
  const ensure = async (at: string): Promise<void> => {
    if (at === '' || at === '/') return
    for (let tries = 1; ; tries++) {
      try {
        await from.createOnce(at, EMPTY, { ...create, ...part() })
        return
      } catch (error) {
        if (error instanceof NodeExistsError) return
        const above = at.slice(0, at.lastIndexOf('/'))
        if (!(error instanceof NoNodeError) || above === '' || tries === ROUNDS) throw error
        // What was made a moment ago is gone again: somebody removes what is empty.
        if (tries > 1) await backOff(view, tries)
        await ensure(above)
      }
    }
  }
  await ensure(path === '/' ? view.root : path)
}

/** The paths of a tree, each before those below it, children in the order of their names. What vanishes is left out. */
export async function* walk(
  client: Client,
  path: string,
  options?: CallOptions,
): AsyncIterableIterator<string> {
  const left = [path]
  const part = partOptions(options ?? {}, client.ports.clock)
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    let children: string[]
    try {
      children = (await client.getChildren(at, part())).children
    } catch (error) {
      if (error instanceof NoNodeError && at !== path) continue
      throw error
    }
    yield at
    const prefix = at === '/' ? '/' : `${at}/`
    for (const child of children.toSorted().toReversed()) left.push(prefix + child)
  }
}

/** Deletes a tree from its leaves up, many at a time. Under `/` everything goes but what is reserved. */
export async function deleteTree(client: View, path: string, options: CallOptions): Promise<void> {
  const part = partOptions(options, client.ports.clock)
  for (let round = 1; ; round++) {
    const levels = await listLevels(client, path, part)
    try {
      for (const level of levels.toReversed()) {
        for (let i = 0; i < level.length; i += WINDOW) {
          await Promise.all(
            level.slice(i, i + WINDOW).map((at) => client.delete(at, { ...part(), missingOk: at !== path })),
          )
        }
      }
      return
    } catch (error) {
      // Somebody has created something meanwhile.
      if (!(error instanceof NotEmptyError) || round === ROUNDS) throw error
      await backOff(client, round)
    }
  }
}

const RESERVED = '/zookeeper'

/** The paths of a tree by their depth. */
async function listLevels(client: View, path: string, part: () => CallOptions): Promise<string[][]> {
  const levels: string[][] = []
  for (let level = [path]; level.length > 0;) {
    const below: string[] = []
    for (let i = 0; i < level.length; i += WINDOW) {
      const some = level.slice(i, i + WINDOW)
      const lists = await Promise.all(some.map((at) => children(client, at, part(), at === path)))
      some.forEach((at, n) => {
        const prefix = at === '/' ? '/' : `${at}/`
        for (const child of lists[n]!)
          if (toServer(client.root, prefix + child) !== RESERVED) below.push(prefix + child)
      })
    }
    if (!(level.length === 1 && level[0] === '/')) levels.push(level)
    level = below
  }
  return levels
}

async function children(client: Client, path: string, call: CallOptions, first: boolean): Promise<string[]> {
  try {
    return (await client.getChildren(path, call)).children
  } catch (error) {
    if (error instanceof NoNodeError && !first) return []
    throw error
  }
}

/** Parents may vanish between two tries: an empty container is the server's to remove. */
export async function createWithParents(
  view: View,
  path: string,
  data: Bytes | null,
  options: CreateOptions,
): Promise<CreateResult> {
  const { parents, ...rest } = options
  const part = partOptions(options, view.ports.clock)
  const mode = parents === 'persistent' ? 'persistent' : 'container'
  for (let tries = 1; ; tries++) {
    try {
      return await view.create(path, data, { ...rest, ...part() })
    } catch (error) {
      const parent = path.slice(0, path.lastIndexOf('/'))
      if (!(error instanceof NoNodeError) || parent === '' || tries === ROUNDS) throw error
      if (tries > 1) await backOff(view, tries)
      await mkdirp(view, parent, { ...part(), mode, ...(options.acl ? { acl: options.acl } : {}) })
    }
  }
}

/** Goes on with a create when a write found no znode, and with a write when the create found one. */
export async function orCreate(
  view: View,
  written: Promise<Stat & Ordered>,
  path: string,
  data: Bytes | null,
  options: SetDataOptions,
): Promise<Stat & Ordered> {
  const { version = -1, idempotent = false } = options
  const part = partOptions(options, view.ports.clock)
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
      if (!(error instanceof NodeExistsError) || tries === ROUNDS) throw error
      if (tries > 1) await backOff(view, tries)
    }
  }
}
