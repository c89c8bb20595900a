import { adminSecurityProblems } from './admin-security.ts'
import { auditProblems } from './audit-problems.ts'
import { hideSecrets } from '../core/hide-secrets.ts'
import type { EnsembleConfiguration } from '../core/quorum/index.ts'
import { memberSecurityProblems } from './member-security.ts'
import type { DefaultInputs, Row } from './row.ts'
import { rows, type ServerSettings, type SettingName } from './table.ts'

export const settingNames = Object.keys(rows) as SettingName[]

/** Session ids begin with the server's id; owners of TTL nodes begin with 255 (disk-format 5.10). */
export const MAX_ID_WITH_EXTENDED_TYPES = 254

/** Returns the row of a setting without its value type, for code that treats all settings alike. */
export function rowOf(name: SettingName): Row<unknown> {
  return rows[name] as unknown as Row<unknown>
}

/** Settings of an embedded server, without those that keep their defaults. */
export type GivenServerSettings = {
  readonly [Name in SettingName | 'ensemble']?: ServerSettings[Name] | undefined
}

/**
 * Returns the settings of an embedded server: `overrides`, and defaults for everything else. Throws a `RangeError` that lists every
 * invalid value with the expected ones.
 */
export function defaults(given: GivenServerSettings = {}): ServerSettings {
  if (checked.has(given)) return given as ServerSettings
  const { ensemble, ...overrides } = given
  const settings = withDefaults(overrides)
  const unknown = Object.keys(overrides).filter((name) => !Object.hasOwn(rows, name))
  const problems = unknown.map((name) => `\`${name}\` is not a setting`)
  for (const name of settingNames) {
    const { type, isSecret, defaultValue } = rowOf(name)
    // Defaults that do not depend on other settings are valid.
    if (overrides[name] === undefined && typeof defaultValue !== 'function') continue
    const value = settings[name]
    if (type.accepts(value)) continue
    const shown = hideSecrets(typeof value === 'object' ? JSON.stringify(value) : String(value))
    const got = isSecret ? 'a value that is not shown' : `\`${shown}\` (${typeof value})`
    problems.push(`Expected \`${name}\` to be ${type.expected}, got ${got}`)
  }
  if (settings.minSessionTimeoutMs > settings.maxSessionTimeoutMs)
    problems.push(
      `Expected \`minSessionTimeoutMs\` to be at most \`maxSessionTimeoutMs\`, got ${settings.minSessionTimeoutMs} and ${settings.maxSessionTimeoutMs}`,
    )
  if (settings.extendedTypesEnabled && settings.serverId > MAX_ID_WITH_EXTENDED_TYPES)
    problems.push(
      `Expected \`serverId\` to be at most ${MAX_ID_WITH_EXTENDED_TYPES} while \`extendedTypesEnabled\` is on, got ${settings.serverId}`,
    )
  for (const { name, text } of [
    ...transportProblems(settings),
    ...auditProblems(settings),
    ...memberSecurityProblems(settings),
    ...adminSecurityProblems(settings),
  ])
    problems.push(`\`${name}\` ${text}`)
  const problem = ensemble === undefined ? undefined : ensembleProblem(ensemble, overrides.serverId)
  if (problem !== undefined) problems.push(problem)
  if (problems.length > 0) throw new RangeError(problems.join('; '))
  return asChecked(ensemble === undefined ? settings : Object.freeze({ ...settings, ensemble }))
}

/** Returns what is wrong with an ensemble, or with the id of this server in it. */
function ensembleProblem(ensemble: EnsembleConfiguration, serverId: number | undefined): string | undefined {
  // A program in JavaScript may pass the text of a configuration, despite the type.
  if (!((ensemble as { members?: unknown } | null)?.members instanceof Map))
    return `Expected \`ensemble\` to be a configuration, as parseConfiguration makes it of lines, got ${typeof ensemble}`
  const ids = [...ensemble.members.keys()].join(', ')
  if (serverId === undefined)
    return `Expected \`serverId\`, the id of this server in \`ensemble\` (${ids}), got none`
  return ensemble.members.has(serverId)
    ? undefined
    : `Expected \`serverId\` to be a member of \`ensemble\` (${ids}), got ${serverId}`
}

/** Where each setting comes from: `zoo.cfg:12`, `JVMFLAGS`, …, or `default`. */
export type Origins = Readonly<Record<SettingName, string>>

/** Settings that are valid, with their origins where these are known. */
const checked = new WeakMap<object, Origins | undefined>()

/** Marks complete, frozen settings as valid, so that a start does not check them again. */
export function asChecked(settings: ServerSettings, origins?: Origins): ServerSettings {
  checked.set(settings, origins)
  return settings
}

/** Returns the origins of loaded settings; undefined for those that a program has made. */
export const originsOf = (settings: ServerSettings): Origins | undefined => checked.get(settings)

/** Returns the problems of the TLS settings. Each text completes a sentence that begins with the setting. */
export function transportProblems(
  settings: ServerSettings,
): readonly { readonly name: SettingName; readonly text: string }[] {
  const { secureClientPort, webSocketPort, webSocketSecure, sslClientAuth } = settings
  const name =
    secureClientPort !== undefined
      ? 'secureClientPort'
      : webSocketPort !== undefined && webSocketSecure
        ? 'webSocketSecure'
        : settings.portUnification
          ? 'portUnification'
          : undefined
  if (settings.sslCrl && settings.sslCrlLocation === undefined)
    return [
      {
        name: 'sslCrl',
        text: 'needs ssl.crl.location, the file with the certificate revocation lists: they are not fetched from the addresses in certificates. Set it, or ssl.crl=false',
      },
    ]
  if (name === undefined) return []
  if (settings.sslKeyStoreLocation === undefined)
    return [
      {
        name,
        text: 'needs ssl.keyStore.location, the file with the private key and the certificate of this server',
      },
    ]
  if (sslClientAuth !== 'none' && settings.sslTrustStoreLocation === undefined)
    return [
      {
        name: 'sslClientAuth',
        text: `is ${sslClientAuth}, which needs ssl.trustStore.location, the file with the authorities that sign the certificates of clients. Set it, or ssl.clientAuth=none`,
      },
    ]
  return []
}

/** Adds defaults and freezes the result. Does not check the given values. */
export function withDefaults(given: { readonly [Name in SettingName]?: unknown }): ServerSettings {
  const result: Record<string, unknown> = {}
  const resolve = (name: SettingName): void => {
    const { defaultValue } = rowOf(name)
    const value = given[name]
    if (value !== undefined) result[name] = value
    else
      result[name] =
        typeof defaultValue === 'function'
          ? (defaultValue as (inputs: DefaultInputs) => unknown)(result as unknown as DefaultInputs)
          : defaultValue
  }
  // Derived defaults last, because they depend on the others.
  for (const name of settingNames) if (typeof rowOf(name).defaultValue !== 'function') resolve(name)
  for (const name of settingNames) if (typeof rowOf(name).defaultValue === 'function') resolve(name)
  for (const value of Object.values(result)) Object.freeze(value)
  return Object.freeze(result) as unknown as ServerSettings
}
