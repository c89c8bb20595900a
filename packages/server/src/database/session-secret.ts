import type { Platform } from '@zabra/runtime'
import { SessionPasswords } from '../core/sessions/index.ts'
import { RecoveryError } from '../persistence/index.ts'

/** Name of the file in `dataDir` that holds the secret of a standalone server, and since when a secret is used. */
const FILE = 'session.secret'
const SECRET_BYTES = 32
const MIN_SECRET_BYTES = 16

export interface SessionSecretSettings {
  readonly dataDir: string
  readonly sessionSecretEnabled: boolean
  readonly sessionSecretFile: string | undefined
}

/** What the file in `dataDir` records. */
interface SecretRecord {
  /** The secret in hexadecimal, where this server has made it. */
  readonly secret: string | undefined
  /** Milliseconds since 1970, or undefined where there was no session when the secret was first used. */
  readonly since: number | undefined
}

/**
 * Loads the secret from which the passwords of sessions are computed. A standalone server makes one and keeps it in `dataDir`; the
 * members of an ensemble share `sessionSecretFile`. `hasSessions` says whether sessions were recovered, whose passwords are older
 * than the secret. Rejects with a `RecoveryError` for a file that holds no usable secret.
 */
export async function loadSessionPasswords(
  { dataDir, sessionSecretEnabled, sessionSecretFile }: SessionSecretSettings,
  { disk, clock, random, logger }: Platform,
  { isMember, hasSessions }: { readonly isMember: boolean; readonly hasSessions: boolean },
): Promise<SessionPasswords> {
  if (!sessionSecretEnabled || (isMember && sessionSecretFile === undefined)) {
    logger.warn(
      {},
      `The passwords of sessions follow from their ids, which the stats of ephemeral nodes show: a client that reads one can take over the session of its owner. ${sessionSecretEnabled ? 'Set sessionSecretFile to a file that all members share' : 'Remove sessionSecretEnabled=false'}`,
    )
    return new SessionPasswords(undefined)
  }
  const path = `${dataDir}/${FILE}`
  const known = (await disk.exists(path)) ? parse(await disk.readFile(path), dataDir) : undefined
  const record = known ?? { secret: undefined, since: hasSessions ? Math.floor(clock.wall()) : undefined }
  const isOwn = sessionSecretFile === undefined
  const secret = record.secret ?? (isOwn ? toHex(random.bytes(SECRET_BYTES)) : undefined)
  if (known === undefined || secret !== record.secret)
    await disk.replaceFile(path, encode({ ...record, secret }), { isSecret: true })
  const bytes = isOwn ? fromHex(secret!) : await readShared(sessionSecretFile, disk)
  return new SessionPasswords({ bytes, since: record.since })
}

async function readShared(path: string, disk: Platform['disk']): Promise<Uint8Array> {
  const action =
    'Write at least 16 random bytes into it, the same on every member, and let only the server read it.'
  if (!(await disk.exists(path)))
    throw new RecoveryError('Expected the secret of sessions (sessionSecretFile), got no file', path, action)
  const bytes = new TextEncoder().encode(new TextDecoder().decode(await disk.readFile(path)).trim())
  if (bytes.length < MIN_SECRET_BYTES)
    throw new RecoveryError(
      `Expected a secret of at least ${MIN_SECRET_BYTES} bytes (sessionSecretFile), got ${bytes.length}`,
      path,
      action,
    )
  return bytes
}

function parse(bytes: Uint8Array, folder: string): SecretRecord {
  const text = new TextDecoder().decode(bytes)
  const { secret, since } =
    /^(?:secret=(?<secret>[\da-f]{64})\n)?since=(?<since>\d{1,15}|never)\n$/.exec(text)?.groups ?? {}
  if (since === undefined)
    throw new RecoveryError(
      `Expected lines secret=… and since=… in ${FILE}, got something else`,
      folder,
      'Restore the file from a backup, or remove it: open sessions then end when their clients reconnect.',
    )
  return { secret, since: since === 'never' ? undefined : Number(since) }
}

function encode({ secret, since }: SecretRecord): Uint8Array {
  const line = secret === undefined ? '' : `secret=${secret}\n`
  return new TextEncoder().encode(`${line}since=${since ?? 'never'}\n`)
}

const toHex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
