import { formatZxid } from '@zabra/protocol'
import type { Cryptography } from '@zabra/runtime'
import * as z from 'zod/mini'
import { MAX_FEATURE_LEVEL } from '../core/quorum/index.ts'
import type { Zxid } from '../core/types.ts'
import { BackupError } from './errors.ts'

const FORMAT = 1

const text = (pattern: RegExp) => z.string().check(z.regex(pattern))

const zxid = z.pipe(
  text(/^0x[\da-f]{1,14}$/),
  z.transform((digits: string): Zxid => Number.parseInt(digits.slice(2), 16)),
)
const hash = text(/^[\da-f]{64}$/)
const time = z.int().check(z.gte(0))

const piece = z.object({
  /** The file in the target. */
  name: text(/^(?:snapshot|log)\/[\w-][\w.-]{0,79}$/),
  bytes: z.int().check(z.gte(0)),
  sha256: hash,
})

const common = {
  format: z.literal(FORMAT),
  /** A random number that all backups of one target share. */
  lineage: text(/^[\da-f]{32}$/),
  /** The id of the ensemble; absent where it had none, and in backups of servers that did not say it. */
  cluster: z.optional(text(/^\d{1,3}-[\da-f]{32}$/)),
  /** The feature level that the ensemble had finalized; absent where none. A release of a lower one may not read the backup. */
  level: z.optional(z.int().check(z.gte(1), z.lte(MAX_FEATURE_LEVEL))),
  /** When the backup was made, in milliseconds since 1970. */
  time,
  /** The server that gave it. */
  server: z.string().check(z.maxLength(200)),
  /** The id of the key; null for one that is not encrypted. */
  key: z.nullable(text(/^[\da-f]{16}$/)),
  piece,
}

const snapshotManifest = z.object({
  ...common,
  kind: z.literal('snapshot'),
  /** The name of the file in a data folder. */
  file: text(/^snapshot\.[\da-f]{1,14}(?:\.gz|\.snappy)?$/),
  /** The last transaction applied when writing began: the log after it is needed. */
  zxid,
  /** With the log up to this transaction the snapshot is exact. */
  exactAt: zxid,
  /** Nodes of the exact tree. */
  nodes: z.int().check(z.gte(1)),
  /** The digest of the exact tree; null where the server keeps none. */
  digest: z.nullable(text(/^[\da-f]{16}$/)),
  /** The last transaction of the backups before, where the server had no log from there to `exactAt`; absent elsewhere. */
  gapAfter: z.optional(zxid),
})

const logManifest = z.object({
  ...common,
  kind: z.literal('log'),
  /** The transaction before the first. */
  after: zxid,
  first: zxid,
  /** The transaction before the last; that before the first where there is one alone. */
  beforeLast: zxid,
  upTo: zxid,
  /** The checksum of the last transaction, which tells histories apart. */
  lastChecksum: z.int().check(z.gte(0)),
  firstTime: z.int(),
  lastTime: z.int(),
  transactions: z.int().check(z.gte(1)),
  /** Present in a part that has taken the place of several smaller ones. */
  merged: z.optional(z.literal(true)),
})

/** Describes a snapshot in a target. */
export type SnapshotManifest = z.infer<typeof snapshotManifest>
/** Describes a part of the log in a target: committed transactions without a gap. */
export type LogManifest = z.infer<typeof logManifest>
export type Manifest = SnapshotManifest | LogManifest

/** Whether a snapshot is exact only with a part of the log. */
export const needsLog = ({ zxid, exactAt }: SnapshotManifest, { after, upTo }: LogManifest): boolean =>
  zxid < exactAt && upTo > zxid && after < exactAt

const anyManifest = z.discriminatedUnion('kind', [snapshotManifest, logManifest])

/** Folder of manifests in a target. A backup without one does not exist. */
export const MANIFESTS = 'manifest'

/** Returns a zxid for the name of a file, so that names sort as zxids do. */
export const sortable = (value: Zxid): string => formatZxid(value).padStart(14, '0')

/** Returns the file of a manifest. That of a merged part is never that of a part which it replaces, whichever member writes them. */
export function manifestName(manifest: Manifest): string {
  const { kind } = manifest
  const end = sortable(kind === 'snapshot' ? manifest.zxid : manifest.upTo)
  const begin = kind === 'log' && manifest.merged === true ? `-${sortable(manifest.after)}` : ''
  return `${MANIFESTS}/${kind}-${end}${begin}.json`
}

/** Returns the text of a manifest, which ends in a sum over the rest. */
export function encodeManifest(manifest: Manifest, cryptography: Cryptography): Uint8Array {
  const values = JSON.parse(
    JSON.stringify(manifest, (name, value: unknown) =>
      ZXID_FIELDS.has(name) && typeof value === 'number' ? `0x${formatZxid(value)}` : value,
    ),
  ) as Record<string, unknown>
  const sum = sumOf(values, cryptography)
  return new TextEncoder().encode(`${JSON.stringify({ ...values, sum }, null, 2)}\n`)
}

/** Reads a manifest. Throws a `BackupError` when it was changed or was written by a newer version. */
export function decodeManifest(bytes: Uint8Array, name: string, cryptography: Cryptography): Manifest {
  const { sum, ...values } = parseObject(new TextDecoder().decode(bytes), name)
  const { format } = values
  if (typeof format === 'number' && format > FORMAT)
    throw new BackupError(
      `${name}: Expected a backup of format ${FORMAT} or older, got ${format}. Read it with the version of Zabra that made it.`,
    )
  if (sum !== sumOf(values, cryptography))
    throw new BackupError(`${name} is damaged: its sum does not fit its contents. Use another backup.`)
  const parsed = anyManifest.safeParse(values)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw new BackupError(
    `${name} is no manifest: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not understood'}. Use another backup.`,
  )
}

/** The fields of manifests that hold zxids, which are written in hexadecimal. */
export const ZXID_FIELDS: ReadonlySet<string> = new Set([
  'zxid',
  'exactAt',
  'gapAfter',
  'after',
  'first',
  'beforeLast',
  'upTo',
])

function parseObject(text: string, name: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new BackupError(`${name} is damaged: it is no JSON. Use another backup.`, { cause })
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>
  throw new BackupError(`${name} is damaged: Expected a JSON object. Use another backup.`)
}

/** Returns the sum of values, whatever the order of their names. */
function sumOf(values: Readonly<Record<string, unknown>>, cryptography: Cryptography): string {
  const hashed = cryptography.sha256()
  hashed.update(new TextEncoder().encode(JSON.stringify(sorted(values))))
  return hashed.digest()
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  )
}
