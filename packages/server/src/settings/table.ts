import { accessRows } from './access-rows.ts'
import { adminRows } from './admin-rows.ts'
import { auditRows } from './audit-rows.ts'
import { backupRows } from './backup-rows.ts'
import { connectionRows } from './connection-rows.ts'
import type { EnsembleConfiguration } from '../core/quorum/index.ts'
import { logRows } from './log-rows.ts'
import { memberSecurityRows } from './member-security-rows.ts'
import { quorumRows } from './quorum-rows.ts'
import type { Row } from './row.ts'
import { saslRows } from './sasl-rows.ts'
import { storageRows } from './storage-rows.ts'
import { transportRows } from './transport-rows.ts'

/**
 * Every setting of the server, by the name that the code uses. Times are stored in milliseconds and sizes in bytes, whatever the
 * unit of the key. To add a setting, add a row to one of the parts and run `pnpm --filter @zabra/server gen:docs`.
 */
export const rows = {
  ...storageRows,
  ...quorumRows,
  ...memberSecurityRows,
  ...transportRows,
  ...connectionRows,
  ...accessRows,
  ...saslRows,
  ...logRows,
  ...adminRows,
  ...auditRows,
  ...backupRows,
} as const

export type Rows = typeof rows
export type SettingName = keyof Rows

/**
 * The settings of one server, checked and frozen. Times end in `Ms` and are milliseconds, sizes end in `Bytes`.
 * Made by {@link defaults} in a program, by `loadSettings` from `zoo.cfg`, the environment and flags.
 */
export type ServerSettings = {
  readonly [Name in SettingName]: Rows[Name] extends Row<infer T> ? T : never
} & {
  /**
   * The members that the configuration file declares, `serverId` among them; absent for a standalone server. Later changes by
   * reconfiguration are stored in `dataDir` and take precedence.
   */
  readonly ensemble?: EnsembleConfiguration
  /** The configuration file, and the keys of the secrets that are written in it; absent if there is none. */
  readonly secretsInFile?: { readonly path: string; readonly keys: readonly string[] }
}

/** The settings that are set, each with the place where it was set. */
export type GivenSettings = Map<SettingName, { value: unknown; where: string }>
