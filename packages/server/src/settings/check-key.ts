import { rowOf, settingNames } from './defaults.ts'
import { findKnownKey, knownKeys } from './known-keys.ts'
import type { SettingEntry, Finding } from './sources.ts'
import { closestMatch } from './closest-match.ts'
import { hideSecrets } from '../core/hide-secrets.ts'

const candidates = [
  ...settingNames.map((name) => rowOf(name).key),
  'dynamicConfigFile',
  'strictConfig',
  ...knownKeys.filter(({ key }) => !key.endsWith('*')).map(({ key }) => key),
]

/** Returns the key as in zoo.cfg: system properties without their prefix. */
export function bareKey({ key, source: by }: SettingEntry): string {
  return by === 'property' ? key.replace(/^zookeeper\./, '') : key
}

/** Describes the value that was given, with a guess at the mistake. */
export function describeValue({ value }: SettingEntry, secret: true | undefined): string {
  if (secret) return 'got something else (not shown, as it may be a secret).'
  if (value === '') return 'got nothing. Give a value or remove the line.'
  const comment = /\s[#!]/.test(value) ? ' A comment needs a line of its own.' : ''
  return `got "${hideSecrets(value)}".${comment}`
}

/** Adds findings for a key that is no setting: known and without effect, rejected, or unknown. */
export function checkOtherKey(entry: SettingEntry, strict: boolean, findings: Finding[]): void {
  const { where } = entry
  const key = bareKey(entry)
  if (key === 'dynamicConfigFile') {
    if (entry.source !== 'file')
      findings.push({
        severity: 'error',
        where,
        key,
        text: 'belongs in the configuration file. Set it there.',
      })
    return
  }
  if (key === 'strictConfig') {
    if (!/^(true|false)$/i.test(entry.value))
      findings.push({
        severity: 'error',
        where,
        key,
        text: `expected true or false, ${describeValue(entry, undefined)}`,
      })
    return
  }
  const withoutPrefix = key.replace(/^zookeeper\./, '')
  if (withoutPrefix !== key && settingNames.some((name) => rowOf(name).key === withoutPrefix)) {
    findings.push({
      severity: 'warning',
      where,
      key,
      text: `has no effect, as in ZooKeeper, which puts the prefix before each key of this file itself. Write ${withoutPrefix}, or remove the line.`,
    })
    return
  }
  if (key.startsWith('authProvider.')) return checkAuthProvider(entry, findings)
  // Each such key adds a name to superUser.
  if (key.startsWith('superUser.')) return
  const known = findKnownKey(key) ?? findKnownKey(key.replace(/^zookeeper\./, ''))
  if (known === undefined) return reportUnknownKey(entry, key, strict, findings)
  const harmless =
    known.status === 'ignored' ||
    known.status === 'unsupported' ||
    (known.status === 'rejectedIfEnabled' && /^(false|no|off|-1)$/i.test(entry.value))
  if (harmless)
    findings.push({ severity: 'warning', where, key, text: `has no effect here: ${known.reason}.` })
  else
    findings.push({ severity: 'error', where, key, text: `is refused: ${known.reason}. Remove it to start.` })
}

function reportUnknownKey({ where }: SettingEntry, key: string, strict: boolean, findings: Finding[]): void {
  const guess = closestMatch(key, candidates)
  const hint = guess === undefined ? 'Remove it' : `Did you mean ${guess}? Correct or remove it`
  findings.push(
    strict
      ? {
          severity: 'error',
          where,
          key,
          text: `is an unknown key. ${hint}, or set strictConfig=false to start anyway.`,
        }
      : { severity: 'warning', where, key, text: `is an unknown key and has no effect. ${hint}.` },
  )
}

/** Authentication providers of Apache ZooKeeper. Key and Ensemble are not supported. */
const builtInProviders = ['Digest', 'IP', 'X509', 'Key', 'Ensemble']

/** Adds findings for an `authProvider.*` key. The built-in schemes are always available; Java classes cannot be loaded. */
function checkAuthProvider({ where, key, value }: SettingEntry, findings: Finding[]): void {
  const [, name] =
    /^org\.apache\.zookeeper\.server\.auth\.(\w+?)(?:Authentication)?Provider$/.exec(value) ?? []
  if (name === 'Digest' || name === 'IP' || name === 'X509') return
  if (name === 'SASL' && value.endsWith('AuthenticationProvider')) return
  if (name !== undefined && builtInProviders.includes(name))
    findings.push({
      severity: 'warning',
      where,
      key,
      text: `has no effect here: ${name} authentication is not supported yet, so no client can get such an identity.`,
    })
  else
    findings.push({
      severity: 'error',
      where,
      key,
      text: `expected a provider of Apache ZooKeeper, got "${value}". Java classes cannot be loaded here; remove the line.`,
    })
}
