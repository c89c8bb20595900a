import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  formatFinding,
  loadSettings,
  rowOf,
  settingNames,
  type Environment,
  type LoadedSettings,
} from '@zabra/server/settings'
import type { FileProblem } from '@zabra/server'
import type { Options } from './command.ts'

/** Returns the configuration file named by the command line or by `ZOOCFG` and `ZOOCFGDIR`, if any. */
export function configFile(options: Options, environment: Environment): string | undefined {
  if (options.config !== undefined) return options.config
  const { ZOOCFG: file, ZOOCFGDIR: folder } = environment
  if (!file && !folder) return undefined
  return folder ? resolve(folder, file || 'zoo.cfg') : file
}

/** Loads the settings from file, environment and flags. Throws when the configuration file cannot be read. */
export function loadConfiguration(options: Options, environment: Environment): LoadedSettings {
  const name = configFile(options, environment)
  return loadSettings({
    ...(name === undefined ? {} : { file: { name, text: readFileSync(name, 'utf8') } }),
    environment,
    flags: [
      ...(options.port === undefined ? [] : [{ flag: '--port', key: 'clientPort', value: options.port }]),
      ...(options.data === undefined ? [] : [{ flag: '--data', key: 'dataDir', value: options.data }]),
      ...(options.logFormat === undefined
        ? []
        : [{ flag: '--log-format', key: 'log.format', value: options.logFormat }]),
    ],
    files: { read: readIfExists, resolve: (path) => resolve(path) },
  })
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw error
  }
}

/** Returns a configuration with the files that a server could not use as errors. */
export function withFileProblems(loaded: LoadedSettings, problems: readonly FileProblem[]): LoadedSettings {
  if (problems.length === 0) return loaded
  const found = problems.map(({ name, text }) => {
    const where = loaded.origins[name]
    return { severity: 'error' as const, where: where === 'default' ? '' : where, key: rowOf(name).key, text }
  })
  return { ...loaded, settings: undefined, findings: [...loaded.findings, ...found] }
}

/** Returns the output of `--check-config`: every finding, then the settings that differ from their defaults. */
export function report({ settings, findings, origins }: LoadedSettings): string[] {
  const lines = findings.map((finding) => `${finding.severity}: ${formatFinding(finding)}`)
  const errors = findings.filter(({ severity }) => severity === 'error').length
  if (settings === undefined)
    return [...lines, `${errors} ${errors === 1 ? 'error' : 'errors'}: a server would not start.`]
  for (const name of settingNames) {
    const row = rowOf(name)
    if (origins[name] === 'default' && name !== 'dataDir' && name !== 'clientPort') continue
    const value = row.isSecret ? '(set, not shown)' : row.type.show(settings[name])
    lines.push(`${row.key} = ${value}   (${origins[name]})`)
  }
  return [...lines, 'The configuration is fine. Everything else is at its default.']
}
