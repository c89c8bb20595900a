import type { ACL } from '@zabra/client'
import { formatPerms, MAX_TTL, validatePath } from '@zabra/protocol'
import { UsageError } from '../exit-codes.ts'
import { parsePerms } from '../text/acl.ts'
import { dataFields } from '../text/bytes.ts'

/** A node of an export. `path` is relative to the exported subtree, `/` for its root. */
export interface ExportedNode {
  readonly path: string
  readonly data: Uint8Array | null
  readonly acl: readonly ACL[]
  /** The node type when it is not plain persistent; known only for exports from snapshots. */
  readonly kind?: 'container' | 'ttl'
  /** Time to live in milliseconds. */
  readonly ttl?: number
  /** The number of the next sequential child. */
  readonly sequence?: number
}

/** The first line of an export. */
export const EXPORT_HEAD = { zabra: 'export', version: 1 } as const

/** Returns what an import cannot restore, for the first line of an export and for the user. */
export const notKeptBy = ({
  isFromServer,
  hasEphemeral,
}: {
  readonly isFromServer: boolean
  readonly hasEphemeral: boolean
}): readonly string[] => [
  hasEphemeral ? 'ephemeral nodes, which become persistent' : 'ephemeral nodes',
  // No reply of the protocol has the type of a node.
  ...(isFromServer
    ? ['container and TTL nodes, which become persistent (--from a data folder keeps their types)']
    : []),
  'versions, zxids and times',
  'quotas and all else of /zookeeper',
]

/** Returns the last line of an export. A truncated export lacks it. */
export const exportEnd = (nodes: number) => ({ zabra: 'end', nodes })

/** Formats a node as one line of JSON: data as text if it is UTF-8, otherwise in Base64. */
export function formatNode({ path, data, acl, kind, ttl, sequence }: ExportedNode): string {
  const entries = acl.map(({ scheme, id, perms }) => ({ scheme, id, perms: formatPerms(perms) }))
  const special = kind === 'container' ? { container: true } : kind === 'ttl' ? { ttl } : {}
  return JSON.stringify({ path, ...dataFields(data), ...special, sequence, acl: entries })
}

/** Parses the lines of an export. Throws a `UsageError` that names the line when it is not in the format of `formatNode`. */
export class ExportReader {
  readonly #name: string
  readonly #seen = new Set<string>()
  /** Access lists by their JSON text, shared between nodes to save memory: a tree has few different ones. */
  readonly #lists = new Map<string, readonly ACL[]>()
  /** Whether a head was read and no end yet. */
  #isOpen = false
  /** The path of the exported subtree, from the head. */
  root: string | undefined

  constructor(name: string) {
    this.#name = name
  }

  /** Parses a line; returns undefined for the head, the end and blank lines. */
  line(text: string, number: number): ExportedNode | undefined {
    if (text.trim() === '') return undefined
    const where = `${this.#name}:${number}`
    const value = parseLine(text, where)
    if (value['zabra'] === EXPORT_HEAD.zabra) {
      if (value['version'] !== EXPORT_HEAD.version)
        throw new UsageError(
          `${where}: Expected an export of version ${EXPORT_HEAD.version}, got ${JSON.stringify(value['version'])}. Use the zabra that wrote it.`,
        )
      this.#isOpen = true
      if (typeof value['root'] === 'string') this.root ??= value['root']
      return undefined
    }
    if (value['zabra'] === 'end') {
      this.#isOpen = false
      return undefined
    }
    const node = parseNode(value, where)
    if (this.#seen.has(node.path))
      throw new UsageError(
        `${where}: Expected every path once, got ${node.path} again. Remove one of the lines.`,
      )
    this.#seen.add(node.path)
    const key = JSON.stringify(value['acl'])
    const known = this.#lists.get(key)
    if (known !== undefined) return { ...node, acl: known }
    this.#lists.set(key, node.acl)
    return node
  }

  /** Throws when the export was truncated: it has a head and no end. Lines written by hand may have neither. */
  end(): void {
    if (this.#isOpen)
      throw new UsageError(
        `${this.#name}: Expected a last line such as ${JSON.stringify(exportEnd(this.#seen.size))}, got none: the export is truncated. Export again.`,
      )
  }
}

function parseLine(line: string, where: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (error) {
    throw new UsageError(
      `${where}: Expected a line of JSON, got something else (${(error as Error).message}). The file may be truncated.`,
    )
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new UsageError(
      `${where}: Expected an object such as {"path":"/a","data":"x","acl":[]}, got ${line.slice(0, 60)}.`,
    )
  return value as Record<string, unknown>
}

function parseNode(value: Record<string, unknown>, where: string): ExportedNode {
  const { path, acl } = value
  const problem =
    typeof path === 'string' ? validatePath(path) : `Expected a path, got ${JSON.stringify(path)}`
  if (problem !== undefined) throw new UsageError(`${where}: ${problem}. Paths look like /app/config.`)
  if (!Array.isArray(acl) || acl.length === 0)
    throw new UsageError(`${where}: Expected an access list with at least one entry in "acl".`)
  return {
    path: path as string,
    data: parseData(value, where),
    acl: acl.map((entry: unknown) => parseEntry(entry, where)),
    ...parseKind(value, where),
    ...parseSequence(value, where),
  }
}

function parseKind(
  { container, ttl }: Record<string, unknown>,
  where: string,
): Pick<ExportedNode, 'kind' | 'ttl'> {
  const isContainer = container === true
  if ((container !== undefined && typeof container !== 'boolean') || (isContainer && ttl !== undefined))
    throw new UsageError(`${where}: Expected "container" to be true and without "ttl", got something else.`)
  if (isContainer) return { kind: 'container' }
  if (ttl === undefined) return {}
  if (!Number.isInteger(ttl) || (ttl as number) < 1 || (ttl as number) > MAX_TTL)
    throw new UsageError(
      `${where}: Expected "ttl" to be whole milliseconds from 1 to ${MAX_TTL}, got ${JSON.stringify(ttl)}.`,
    )
  return { kind: 'ttl', ttl: ttl as number }
}

function parseSequence({ sequence }: Record<string, unknown>, where: string): Pick<ExportedNode, 'sequence'> {
  if (sequence === undefined) return {}
  if (Number.isInteger(sequence) && (sequence as number) >= 0 && (sequence as number) < 2 ** 31)
    return { sequence: sequence as number }
  throw new UsageError(
    `${where}: Expected "sequence" to be a whole number from 0 to ${2 ** 31 - 1}, got ${JSON.stringify(sequence)}.`,
  )
}

function parseData({ data, base64 }: Record<string, unknown>, where: string): Uint8Array | null {
  if (typeof base64 === 'string') {
    const bytes = Buffer.from(base64, 'base64')
    if (bytes.toString('base64') === base64) return new Uint8Array(bytes)
  } else if (base64 === undefined) {
    if (data === null) return null
    if (typeof data === 'string') return new TextEncoder().encode(data)
  }
  throw new UsageError(`${where}: Expected "data" with a text or null, or "base64" with Base64, got neither.`)
}

function parseEntry(entry: unknown, where: string): ACL {
  const { scheme, id, perms } = (entry ?? {}) as Record<string, unknown>
  const bits = typeof perms === 'string' ? parsePerms(perms) : undefined
  if (typeof scheme !== 'string' || typeof id !== 'string' || bits === undefined)
    throw new UsageError(
      `${where}: Expected an entry such as {"scheme":"world","id":"anyone","perms":"cdrwa"}, got ${JSON.stringify(entry)}.`,
    )
  return { perms: bits, scheme, id }
}
