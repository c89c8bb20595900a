import { rowOf, settingNames } from './defaults.ts'
import { findKnownKey, knownKeys } from './known-keys.ts'
import type { SettingEntry, Finding } from './sources.ts'
import { closestMatch } from './closest-match.ts'

const candidates = [
  ...settingNames.map((name) => rowOf(name).key),
  'dynamicConfigFile',
  'strictConfig',
  ...knownKeys.filter(({ key }) => !key.endsWith('*')).map(({ key }) => key),
]

/** The key as zoo.cfg has it: system properties lose their prefix. */
export function bareKey({ key, source: by }: SettingEntry): string {
  return by === 'property' ? key.replace(/^zookeeper\./, '') : key
}

/** What came instead, and a guess at why. */
export function describeValue({ value }: SettingEntry, secret: true | undefined): string {
  if (secret) return 'got something else (not shown, as it may be a secret).'
  if (value === '') return 'got nothing. Give a value or remove the line.'
  const comment = /\s[#!]/.test(value) ? ' A comment needs a line of its own.' : ''
  return `got "${value}".${comment}`
}

/** A key that is no setting: known and without effect, refused, or unknown. */
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
  if (key.startsWith('authProvider.')) return checkAuthProvider(entry, findings)
  // Each adds a name to superUser.
  if (key.startsWith('superUser.')) return
  const known = findKnownKey(key)
  if (known === undefined) return reportUnknownKey(entry, key, strict, findings)
  const harmless =
    known.status === 'moot' ||
    known.status === 'later' ||
    (known.status === 'guards' && /^(false|no|off)$/i.test(entry.value))
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
          text: `nobody knows this key. ${hint}, or set strictConfig=false to start all the same.`,
        }
      : { severity: 'warning', where, key, text: `nobody knows this key, so it has no effect. ${hint}.` },
  )
}

/** Of ZooKeeper's own; those behind the first three are not served. */
const builtInProviders = ['Digest', 'IP', 'X509', 'Key', 'Ensemble']

/** Our own schemes are always there; a class of somebody else cannot be loaded. */
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
      text: `has no effect here: ${name} authentication is not served yet, so nobody can prove such an identity.`,
    })
  else
    findings.push({
      severity: 'error',
      where,
      key,
      text: `expected a provider of Apache ZooKeeper, got "${value}". Java classes cannot be loaded here; remove the line.`,
    })
}
