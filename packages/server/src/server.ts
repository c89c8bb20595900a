import type { Platform, TlsOptions } from '@zabra/runtime'
import { AdminServer, ServerBackups } from './admin/index.ts'
import { AuditLog, configEvent } from './audit/index.ts'
import { loadSessionPasswords, openDatabase, SharedSessionSecret } from './database/index.ts'
import { DiskLanes } from './disk-lanes.ts'
import { FeatureLevels } from './ensemble/feature-levels.ts'
import { Member, type MemberParts } from './ensemble/member.ts'
import { Membership } from './ensemble/membership.ts'
import { EventLogger } from './logging/index.ts'
import { readClusterId, RecoveryProgress } from './persistence/index.ts'
import { SecretFiles } from './secret-files.ts'
import type { Server } from './server-types.ts'
import { sharesSessionSecret, type ServerSettings } from './settings/index.ts'
import { LiveSettings } from './settings/live-settings.ts'
import { FEATURE_LEVEL } from './version.ts'

/**
 * Starts a server: a member of an ensemble where `settings.ensemble` names one, else a standalone server. Resolves when the ports are
 * open; a member does not wait for a leader. Rejects with a `DamageError` or `RecoveryError` when the files cannot be trusted, a
 * `FolderLockedError` when another server uses them, a `BackupError` when backups cannot be written as configured, a `NetworkError`
 * when a port cannot be bound, an `HttpPortError` when it is one for HTTP that is set, a `CertificateError` when a
 * key or certificate cannot be used, a `SettingFileError` when another file that a setting names cannot be used, and a `DiskError` when
 * the disk refuses; each message says what to do. `signal` ends a start that reads large data, which then rejects with its reason; it has no
 * effect on a server that has started. `featureLevel` makes it act as another release, for tests of upgrades.
 */
export function createServer(
  settings: ServerSettings,
  platform: Platform,
  { featureLevel = FEATURE_LEVEL, signal }: StartOptions = {},
): Promise<Server> {
  return start(new LiveSettings(settings), platform, { featureLevel, signal })
}

interface StartOptions {
  readonly featureLevel?: number
  readonly signal?: AbortSignal | undefined
}

async function start(
  liveSettings: LiveSettings,
  platform: Platform,
  { featureLevel, signal }: StartOptions & { readonly featureLevel: number },
): Promise<Server> {
  const settings = liveSettings.values
  const log = new EventLogger(platform.logger, platform.clock)
  const identity = settings.ensemble === undefined ? {} : { member: settings.serverId }
  log.origin = () => identity
  const lanes = new DiskLanes(platform.disk, settings)
  const tls = platform.networkFactories?.tls
  const logged = {
    ...platform,
    logger: log,
    disk: lanes.disk,
    networkFactories: {
      ...platform.networkFactories,
      tls: tls && ((options: TlsOptions) => tls(options, lanes.ofFiles)),
    },
  }
  // Opened first, so that probes see the recovery.
  const audit = await AuditLog.open(settings, logged)
  if (audit !== undefined)
    log.observer = (id, context, message) => {
      const event = configEvent(id, context, message)
      if (event !== undefined) audit.record(event)
    }
  const recovery = new RecoveryProgress(() => platform.clock.monotonic())
  const admin = new AdminServer(liveSettings, logged, { audit, log, recovery })
  const secretFiles = new SecretFiles(settings, logged)
  try {
    await secretFiles.start()
    const backups = await ServerBackups.open(settings, logged)
    await admin.listen()
    const parts = { admin, audit, backups, secretFiles, log, recovery, featureLevel, signal }
    const member = await startMember(settings, logged, parts)
    audit?.recordServer('serverStart', 'success')
    return member
  } catch (error) {
    audit?.recordServer('serverStart', 'failure')
    secretFiles.stop()
    await admin.close()
    await audit?.close()
    throw error
  }
}

async function startMember(
  settings: ServerSettings,
  platform: Platform,
  {
    log,
    recovery,
    featureLevel,
    signal,
    ...parts
  }: Pick<MemberParts, 'admin' | 'audit' | 'backups' | 'secretFiles'> & {
    readonly log: EventLogger
    readonly recovery: RecoveryProgress
    readonly featureLevel: number
    readonly signal: AbortSignal | undefined
  },
): Promise<Member> {
  let features: FeatureLevels
  const database = await openDatabase(settings, platform, {
    isMember: settings.ensemble !== undefined,
    progress: recovery,
    signal,
    // An earlier release would take the formats of a later one for damage.
    locked: async ({ snapshots }) => {
      features = await FeatureLevels.load(platform.disk, snapshots, featureLevel)
    },
  })
  try {
    const sharedSecret = sharesSessionSecret(settings)
      ? await SharedSessionSecret.load(settings.dataDir, platform)
      : undefined
    const passwords =
      sharedSecret?.passwords ??
      (await loadSessionPasswords(settings, platform, {
        isMember: settings.ensemble !== undefined,
        hasSessions: database.sessions.size > 0,
      }))
    const membership = await Membership.load(settings, platform)
    const clusterId = await readClusterId(platform.disk, database.folders.snapshots)
    const member = new Member(settings, platform, {
      database,
      membership,
      clusterId,
      features: features!,
      passwords,
      sharedSecret,
      ...parts,
    })
    const identity = log.origin()
    log.origin = () => ({ ...identity, epoch: member.epoch, role: member.role })
    const { admin } = parts
    admin.attach(member)
    await member.start(signal)
    admin.reportReadiness()
    return member
  } catch (error) {
    await database.close()
    throw error
  }
}
