import type { DefaultInputs, Row } from './row.ts'
import { rows, type ServerSettings, type SettingName } from './table.ts'

export const settingNames = Object.keys(rows) as SettingName[]

/** Session ids begin with the server's id, and the owners of nodes with a time to live with 255 (`EphemeralType`). */
export const MAX_ID_WITH_EXTENDED_TYPES = 254

/** The row of a setting, with its type forgotten: for code that treats all settings alike. */
export function rowOf(name: SettingName): Row<unknown> {
  return rows[name] as unknown as Row<unknown>
}

/**
 * Settings for a server inside a program: everything at its default but `overrides`.
 * Throws a `RangeError` that lists every value that does not fit, with what was expected.
 */
export function defaults({
  ensemble,
  ...overrides
}: { readonly [Name in SettingName | 'ensemble']?: ServerSettings[Name] | undefined } = {}): ServerSettings {
  const complete = withDefaults(overrides)
  const unknown = Object.keys(overrides).filter((name) => !Object.hasOwn(rows, name))
  const problems = unknown.map((name) => `\`${name}\` is not a setting`)
  for (const name of settingNames) {
    const { type: kind, isSecret: secret } = rowOf(name)
    const value = complete[name]
    if (kind.value.safeParse(value).success) continue
    const shown = typeof value === 'object' ? JSON.stringify(value) : String(value)
    const got = secret ? 'a value that is not shown' : `\`${shown}\` (${typeof value})`
    problems.push(`Expected \`${name}\` to be ${kind.expected}, got ${got}`)
  }
  if (complete.minSessionTimeoutMs > complete.maxSessionTimeoutMs)
    problems.push(
      `Expected \`minSessionTimeoutMs\` to be at most \`maxSessionTimeoutMs\`, got ${complete.minSessionTimeoutMs} and ${complete.maxSessionTimeoutMs}`,
    )
  if (complete.extendedTypesEnabled && complete.serverId > MAX_ID_WITH_EXTENDED_TYPES)
    problems.push(
      `Expected \`serverId\` to be at most ${MAX_ID_WITH_EXTENDED_TYPES} while \`extendedTypesEnabled\` is on, got ${complete.serverId}`,
    )
  for (const { name, text } of transportProblems(complete)) problems.push(`\`${name}\` ${text}`)
  if (ensemble !== undefined && !ensemble.members.has(complete.serverId))
    problems.push(
      `Expected \`serverId\` to be a member of \`ensemble\` (${[...ensemble.members.keys()].join(', ')}), got ${complete.serverId}`,
    )
  if (problems.length > 0) throw new RangeError(problems.join('; '))
  return ensemble === undefined ? complete : Object.freeze({ ...complete, ensemble })
}

/** What listeners over TLS lack. Each text completes a sentence that begins with the setting. */
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
        text: 'needs ssl.crl.location, the file with the lists of revoked certificates: lists are not fetched from where certificates say. Set it, or ssl.crl=false',
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
        text: `is ${sslClientAuth}, which needs ssl.trustStore.location, the file with the authorities that vouch for clients. Set it, or ssl.clientAuth=none`,
      },
    ]
  return []
}

/** Fills what is missing and freezes the result. Does not check the values that are given. */
export function withDefaults(given: { readonly [Name in SettingName]?: unknown }): ServerSettings {
  const result: Record<string, unknown> = {}
  const take = (name: SettingName): void => {
    const { defaultValue: fallback } = rowOf(name)
    const value = given[name]
    if (value !== undefined) result[name] = value
    else
      result[name] =
        typeof fallback === 'function'
          ? (fallback as (basis: DefaultInputs) => unknown)(result as unknown as DefaultInputs)
          : fallback
  }
  // Derived values come last: they follow from the plain ones.
  for (const name of settingNames) if (typeof rowOf(name).defaultValue !== 'function') take(name)
  for (const name of settingNames) if (typeof rowOf(name).defaultValue === 'function') take(name)
  for (const value of Object.values(result)) Object.freeze(value)
  return Object.freeze(result) as unknown as ServerSettings
}
