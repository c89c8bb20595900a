import {
  CertificateError,
  DiskError,
  TlsOptionError,
  type Disk,
  type Platform,
  type TlsOptions,
} from '@zabra/runtime'
import { adminTls, adminTlsOptions, AdminTokens, readCredentials } from './admin/index.ts'
import { AuditFile } from './audit/index.ts'
import { isRemoteTarget, parseKeyBytes, parseTarget } from './backup/index.ts'
import { clientTlsOptions } from './connections/listeners.ts'
import { readSessionSecret } from './database/index.ts'
import { memberTlsOptions } from './ensemble/member-security.ts'
import { sharesSessionSecret, type ServerSettings, type SettingName } from './settings/index.ts'

/** A file that a server with these settings could not use. */
export interface FileProblem {
  /** The setting that names the file. */
  readonly name: SettingName
  /** What is wrong with the file, and what to do. */
  readonly text: string
}

/** A use of files, and the settings that name them. */
interface FileUse {
  readonly names: readonly SettingName[]
  /** The setting that an error about other options than files belongs to. */
  readonly optionName?: SettingName
  open(): Promise<unknown>
}

/**
 * Opens the files that a server with these settings opens at its start: certificates, keys and their passwords, revocation lists, tokens,
 * the secret of sessions, the audit file, the key of backups and the credentials for S3. Changes nothing. Resolves to what a server could
 * not use.
 */
export async function checkFiles(
  settings: ServerSettings,
  platform: Pick<Platform, 'disk' | 'networkFactories'>,
): Promise<readonly FileProblem[]> {
  const problems: FileProblem[] = []
  for (const use of usesOf(settings, platform)) {
    try {
      await use.open()
    } catch (error) {
      problems.push(problemOf(error, use, settings))
    }
  }
  return problems
}

/** A kind of port that uses TLS, and the options of its network. */
export interface TlsUse {
  readonly port: 'clients' | 'members' | 'admin'
  readonly options: TlsOptions
}

/** Returns what the ports of a server with these settings use TLS for. Opens nothing. */
export function tlsUses(settings: ServerSettings): readonly TlsUse[] {
  const ofPorts = {
    clients: clientTlsOptions(settings),
    members: settings.ensemble === undefined ? undefined : memberTlsOptions(settings),
    admin: adminTlsOptions(settings),
  }
  return (['clients', 'members', 'admin'] as const).flatMap((port) => {
    const options = ofPorts[port]
    return options === undefined ? [] : [{ port, options }]
  })
}

function* usesOf(
  settings: ServerSettings,
  { disk, networkFactories }: Pick<Platform, 'disk' | 'networkFactories'>,
): Generator<FileUse> {
  const tls = networkFactories?.tls
  const forClients = clientTlsOptions(settings)
  if (tls !== undefined && forClients !== undefined)
    yield {
      names: ['sslKeyStoreLocation', 'sslTrustStoreLocation', 'sslCrlLocation', ...clientPasswords],
      optionName: 'sslCipherSuites',
      open: () => tls(forClients).reload(),
    }
  const forMembers = settings.ensemble === undefined ? undefined : memberTlsOptions(settings)
  if (tls !== undefined && forMembers !== undefined)
    yield {
      names: ['quorumKeyStoreLocation', 'quorumTrustStoreLocation', 'quorumCrlLocation', ...memberPasswords],
      optionName: 'quorumCipherSuites',
      open: () => tls(forMembers).reload(),
    }
  const forAdmin =
    tls !== undefined && settings.adminEnabled ? adminTls(settings, networkFactories) : undefined
  if (forAdmin !== undefined)
    yield {
      names: [
        'adminKeyStoreLocation',
        'adminTrustStoreLocation',
        ...adminPasswords,
        'quorumKeyStoreLocation',
        'quorumTrustStoreLocation',
        ...memberPasswords,
        'sslKeyStoreLocation',
        'sslTrustStoreLocation',
        ...clientPasswords,
      ],
      open: () => forAdmin.reload(),
    }
  const { adminTokensFile: tokens, sessionSecretFile: secret } = settings
  if (tokens !== undefined) yield { names: ['adminTokensFile'], open: () => AdminTokens.read(disk, tokens) }
  if (secret !== undefined && settings.sessionSecretEnabled && !sharesSessionSecret(settings))
    yield { names: ['sessionSecretFile'], open: () => readSessionSecret(secret, disk) }
  const { auditEnabled, auditFile } = settings
  if (auditEnabled && auditFile !== undefined)
    yield { names: ['auditFile'], open: () => AuditFile.check(disk, auditFile) }
  yield* backupUses(settings, disk)
}

function* backupUses(settings: ServerSettings, disk: Disk): Generator<FileUse> {
  const { backupTargets, backupKeyFile } = settings
  if (backupTargets.length === 0) return
  yield { names: ['backupTargets'], open: async () => backupTargets.map(parseTarget) }
  if (backupKeyFile !== undefined)
    yield {
      names: ['backupKeyFile'],
      open: async () =>
        parseKeyBytes(new TextDecoder().decode(await disk.readFile(backupKeyFile)), backupKeyFile),
    }
  if (backupTargets.some(isRemoteTarget))
    yield { names: ['backupS3CredentialsFile'], open: () => readCredentials(settings, disk) }
}

const clientPasswords = ['sslKeyStorePasswordPath', 'sslTrustStorePasswordPath'] as const
const memberPasswords = ['quorumKeyStorePasswordPath', 'quorumTrustStorePasswordPath'] as const
const adminPasswords = ['adminKeyStorePasswordPath', 'adminTrustStorePasswordPath'] as const

function problemOf(error: unknown, { names, optionName }: FileUse, settings: ServerSettings): FileProblem {
  const text = error instanceof Error ? error.message : String(error)
  const path = error instanceof CertificateError ? error.path : undefined
  const named = names.find((name) => path !== undefined && settings[name] === path)
  const first = names.find((name) => settings[name] !== undefined) ?? names[0]!
  const isOption = error instanceof TlsOptionError && optionName !== undefined
  const advice = error instanceof DiskError ? '. Check the path and its permissions' : ''
  return { name: isOption ? optionName : (named ?? first), text: `${text.replace(/\.$/, '')}${advice}` }
}
