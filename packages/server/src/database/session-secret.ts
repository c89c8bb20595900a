import type { Platform } from '@zabra/runtime'
import { SessionPasswords } from '../core/sessions/index.ts'
import type { SharedSecret } from '../core/zab/index.ts'
import { RecoveryError } from '../persistence/index.ts'
import { useSettingFile } from '../core/setting-file-error.ts'

/** Name of the file in `dataDir` that holds the secret which this server has made or was given, and since when a secret is used. */
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
  /** The secret in hexadecimal, where this server has made it, or has it from other members. */
  readonly secret: string | undefined
  /**
   * Milliseconds since 1970; `never` where there was no session when the secret was first used; `unused` while other members do not
   * have the secret.
   */
  readonly since: number | 'never' | 'unused'
  /** The generation of a secret that members share. */
  readonly generation?: number | undefined
}

/**
 * Loads the secret from which the passwords of sessions are computed. A standalone server makes one and keeps it in `dataDir`; the
 * members of an ensemble share `sessionSecretFile`. `hasSessions` says whether sessions were recovered, whose passwords are older
 * than the secret. Rejects with a `RecoveryError` where its own file holds no usable secret, and with a `SettingFileError` for `sessionSecretFile`.
 */
export async function loadSessionPasswords(
  { dataDir, sessionSecretEnabled, sessionSecretFile }: SessionSecretSettings,
  { disk, clock, random, logger }: Platform,
  { isMember, hasSessions }: { readonly isMember: boolean; readonly hasSessions: boolean },
): Promise<SessionPasswords> {
  if (!sessionSecretEnabled || (isMember && sessionSecretFile === undefined)) {
    logger.warn(
      { id: 'session.passwords-from-ids' },
      `The passwords of sessions follow from their ids, which the stats of ephemeral nodes show: a client that reads one can take over the session of its owner. ${sessionSecretEnabled ? 'Let members log in (quorumSecretFile) or use TLS, or set sessionSecretFile to a file that all members share' : 'Remove sessionSecretEnabled=false'}`,
    )
    return new SessionPasswords(undefined)
  }
  const path = `${dataDir}/${FILE}`
  const known = (await disk.exists(path)) ? parse(await disk.readFile(path), dataDir) : undefined
  const isOwn = sessionSecretFile === undefined
  const secret = known?.secret ?? (isOwn ? toHex(random.bytes(SECRET_BYTES)) : undefined)
  const isUsed = known !== undefined && known.since !== 'unused'
  const since = isUsed ? known.since : hasSessions ? Math.floor(clock.wall()) : 'never'
  if (!isUsed || secret !== known.secret)
    await disk.replaceFile(path, encode({ secret, since }), { isSecret: true })
  const bytes = isOwn
    ? fromHex(secret!)
    : await useSettingFile('sessionSecretFile', () => readSessionSecret(sessionSecretFile, disk))
  return new SessionPasswords({ bytes, since: typeof since === 'number' ? since : undefined })
}

/**
 * The secret of sessions that the members of an ensemble share, in memory and in `dataDir`. A member without one makes one that is
 * not used before all members have the same.
 */
export class SharedSessionSecret {
  readonly passwords: SessionPasswords
  readonly #path: string
  readonly #disk: Platform['disk']
  #current: SharedSecret
  /** The file is written by one action after the other. */
  #writing: Promise<void> = Promise.resolve()

  constructor(current: SharedSecret, path: string, disk: Platform['disk']) {
    this.#current = current
    this.#path = path
    this.#disk = disk
    this.passwords = new SessionPasswords(undefined)
    this.#apply()
  }

  /** Loads the secret of a member. Rejects with a `RecoveryError` for a file that holds no usable secret. */
  static async load(dataDir: string, { disk, random }: Platform): Promise<SharedSessionSecret> {
    const path = `${dataDir}/${FILE}`
    const known = (await disk.exists(path)) ? parse(await disk.readFile(path), dataDir) : undefined
    if (known?.secret === undefined) {
      const made = { generation: 0, bytes: random.bytes(SECRET_BYTES), since: undefined }
      const shared = new SharedSessionSecret(made, path, disk)
      await shared.adopt(made)
      return shared
    }
    // A standalone server has used its secret since its first session.
    const { secret, since, generation = 1 } = known
    const sinceMs = since === 'never' ? 0 : since
    const current = { generation, bytes: fromHex(secret), since: sinceMs === 'unused' ? undefined : sinceMs }
    return new SharedSessionSecret(current, path, disk)
  }

  get current(): SharedSecret {
    return this.#current
  }

  /** Uses a secret from now on. Resolves when it is on disk. */
  adopt(secret: SharedSecret): Promise<void> {
    this.#current = secret
    this.#apply()
    const { bytes, since = 'unused', generation } = secret
    const content = encode({ secret: toHex(bytes), since, generation })
    this.#writing = this.#writing
      .catch(() => {})
      .then(() => this.#disk.replaceFile(this.#path, content, { isSecret: true }))
    return this.#writing
  }

  #apply(): void {
    const { bytes, since } = this.#current
    this.passwords.replace({ bytes, since, isPending: since === undefined })
  }
}

/** Reads the secret of `sessionSecretFile`. Rejects with a `RecoveryError` when the file holds no usable secret. */
export async function readSessionSecret(path: string, disk: Platform['disk']): Promise<Uint8Array> {
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
  const { secret, since, generation } =
    /^(?:secret=(?<secret>[\da-f]{64})\n)?since=(?<since>\d{1,15}|never|unused)\n(?:generation=(?<generation>\d{1,13})\n)?$/.exec(
      text,
    )?.groups ?? {}
  if (since === undefined)
    throw new RecoveryError(
      `Expected lines secret=… and since=… in ${FILE}, got something else`,
      folder,
      'Restore the file from a backup, or remove it: open sessions then end when their clients reconnect.',
    )
  return {
    secret,
    since: since === 'never' || since === 'unused' ? since : Number(since),
    generation: generation === undefined ? undefined : Number(generation),
  }
}

function encode({ secret, since, generation }: SecretRecord): Uint8Array {
  const first = secret === undefined ? '' : `secret=${secret}\n`
  const last = generation === undefined ? '' : `generation=${generation}\n`
  return new TextEncoder().encode(`${first}since=${since}\n${last}`)
}

const toHex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')

const fromHex = (text: string): Uint8Array =>
  Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
