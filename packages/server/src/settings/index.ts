/** Settings: their table, defaults, and loading them from zoo.cfg, the environment and flags. */
export type { Group, Row } from './row.ts'
export { PROMETHEUS_PROVIDER } from './admin-rows.ts'
export { rows, type ServerSettings, type SettingName } from './table.ts'
export { defaults, rowOf, settingNames, type GivenServerSettings } from './defaults.ts'
export {
  formatFinding,
  parseZooCfg,
  settingsFromEnvironment,
  type SettingEntry,
  type Environment,
  type Finding,
} from './sources.ts'
export { loadSettings, type LoadedSettings, type SettingsSources } from './load.ts'
export type { SettingsFiles } from './read-file.ts'
export { parseProperties } from '../core/properties.ts'
export {
  applyReconfig,
  ConfigurationError,
  parseConfiguration,
  printConfiguration,
  ReconfigurationError,
  type EnsembleConfiguration,
  type ReconfigRequest,
} from '../core/quorum/index.ts'
export { SettingFileError, useSettingFile } from '../core/setting-file-error.ts'
export { nextTime, type Schedule } from './schedule.ts'
export { LATE_INTERVALS, MAX_DISK_USED, MIN_CERTIFICATE_DAYS } from './warning-limits.ts'
export { usesAdminTls } from './admin-security.ts'
export { sharesSessionSecret, usesQuorumTls } from './member-security.ts'
