import type { Context } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { note } from '../io.ts'
import type { Client } from '@zabra/client'
import type { ExportedNode } from './export-format.ts'
import { readNodes } from './export-source.ts'
import { openSession } from './open.ts'

/** A subtree on a server: `/app` on the server of the options, or `host:port,…/app`. */
export interface Subtree {
  readonly server: string | undefined
  readonly path: string
}

/** Parses a subtree. Throws a `UsageError` when it has no path. */
export function parseSubtree(text: string): Subtree {
  if (text.startsWith('/')) return { server: undefined, path: text }
  const root = /(?<![:/])\/(?!\/).*$/.exec(text)?.[0]
  if (root === undefined)
    throw new UsageError(
      `Expected a path such as /app, or a server and a path such as zk2:2181/app, got "${text}".`,
    )
  return { server: text.slice(0, -root.length), path: root }
}

/** Opens a session on the server of each subtree, runs `work` and closes the sessions. */
export async function withSubtrees<T>(
  { io, options }: Context,
  subtrees: readonly [Subtree, Subtree],
  work: (from: Client, to: Client) => Promise<T>,
): Promise<T> {
  const settings = options()
  const open = ({ server = settings.server }: Subtree): Promise<Client> =>
    openSession({ ...settings, server }, io.signal, (line) => note(io, line))
  const from = await open(subtrees[0])
  try {
    if (subtrees[0].server === subtrees[1].server) return await work(from, from)
    const to = await open(subtrees[1])
    try {
      return await work(from, to)
    } finally {
      await to.close()
    }
  } finally {
    await from.close()
  }
}

/** Reads a subtree without its ephemeral nodes, with paths below its root; the root is `/`. */
export async function* readSubtree(
  zk: Client,
  root: string,
  signal: AbortSignal,
  unreadable: (path: string) => void,
): AsyncGenerator<ExportedNode> {
  for await (const { path, data, acl, isEphemeral } of readNodes(zk, root, signal, unreadable))
    if (!isEphemeral) yield { path: root === '/' ? path : path.slice(root.length) || '/', data, acl }
}
