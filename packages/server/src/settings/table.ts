import { accessRows } from './access-rows.ts'
import { connectionRows } from './connection-rows.ts'
import type { EnsembleConfiguration } from '../core/quorum/index.ts'
import { quorumRows } from './quorum-rows.ts'
import type { Row } from './row.ts'
import { saslRows } from './sasl-rows.ts'
import { storageRows } from './storage-rows.ts'
import { transportRows } from './transport-rows.ts'

/**
 * Every setting that the server honours, by the name that the code uses. Times are kept in milliseconds and sizes in
 * bytes, whatever the unit of the key. To add a setting, add a row to one of its parts and run
 * `pnpm --filter @zabra/server gen:docs`.
 */
export const rows = {
  ...storageRows,
  ...quorumRows,
  ...transportRows,
  ...connectionRows,
  ...accessRows,
  ...saslRows,
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
   * The members as the operator has written them, `serverId` among them; absent for a server on its own. What was
   * changed since by reconfiguration lies in `dataDir` and is newer.
   */
  readonly ensemble?: EnsembleConfiguration
}
