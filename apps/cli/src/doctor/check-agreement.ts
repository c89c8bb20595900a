import { printConfiguration, rowOf, settingNames, type ServerSettings } from '@zabra/server/settings'
import { finding, type Finding } from './finding.ts'

/** Settings that members must have in common, by their keys: with different ones they time out, refuse each other, or decide differently. */
const COMMON = (
  'tickTime initLimit syncLimit jute.maxbuffer standaloneEnabled reconfigEnabled extendedTypesEnabled enforceQuota skipACL ' +
  'sslQuorum quorum.auth.enableSasl quorum.auth.learnerRequireSasl quorum.auth.serverRequireSasl members'
).split(' ')

/** A member with its settings by their keys in `zoo.cfg`, as texts. */
export interface MemberSettings {
  readonly where: string
  readonly settings: Readonly<Record<string, string>>
}

/** Returns the settings that `checkAgreement` compares, of a configuration. */
export function commonSettings(settings: ServerSettings): MemberSettings['settings'] {
  const values: Record<string, string> = {}
  for (const name of settingNames) {
    const { key, type } = rowOf(name)
    if (COMMON.includes(key)) values[key] = type.show(settings[name])
  }
  if (settings.ensemble !== undefined)
    values['members'] = printConfiguration(settings.ensemble)
      .replace(/^version=.*$/m, '')
      .trim()
  return values
}

/** Checks that members have settings in common which must not differ. */
export function* checkAgreement(members: readonly MemberSettings[]): Generator<Finding> {
  for (const key of COMMON) {
    const byValue = new Map<string, string[]>()
    for (const { where, settings } of members)
      if (settings[key] !== undefined)
        byValue.set(settings[key], [...(byValue.get(settings[key]) ?? []), where])
    if (byValue.size < 2) continue
    const groups = [...byValue].map(
      ([value, places]) => `${value.replaceAll('\n', ' ')} in ${places.join(', ')}`,
    )
    yield finding(
      'members-differ',
      key,
      groups.join('; '),
      'Give all members the same value, one restart after the other.',
    )
  }
}
