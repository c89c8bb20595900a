import type { ServerSettings, SettingName } from './table.ts'

/** A problem of a setting. The text completes a sentence that begins with the setting. */
export interface SettingProblem {
  readonly name: SettingName
  readonly text: string
}

/** Whether members connect with TLS, or accept TLS from other members. */
export const usesQuorumTls = (settings: ServerSettings): boolean =>
  settings.sslQuorum || settings.quorumPortUnification

/** Returns the contradictions in the settings for security between members. */
export function memberSecurityProblems(settings: ServerSettings): readonly SettingProblem[] {
  const name = settings.sslQuorum ? 'sslQuorum' : 'quorumPortUnification'
  if (settings.quorumCrl && settings.quorumCrlLocation === undefined)
    return [
      {
        name: 'quorumCrl',
        text: 'needs ssl.quorum.crl.location, the file with the certificate revocation lists: they are not fetched from the addresses in certificates. Set it, or ssl.quorum.crl=false',
      },
    ]
  if (!usesQuorumTls(settings)) return []
  if (settings.quorumKeyStoreLocation === undefined)
    return [
      {
        name,
        text: 'needs ssl.quorum.keyStore.location, the file with the private key and the certificate of this member. zabra cert issue makes one',
      },
    ]
  if (settings.quorumTrustStoreLocation === undefined)
    return [
      {
        name,
        text: 'needs ssl.quorum.trustStore.location, the file with the authorities that sign the certificates of members',
      },
    ]
  return []
}

/** Returns the settings that weaken the security between members, for warnings at each start. */
export function memberSecurityWarnings(settings: ServerSettings): readonly SettingProblem[] {
  if (!usesQuorumTls(settings)) return []
  const warnings: SettingProblem[] = []
  if (settings.quorumPortUnification)
    warnings.push({
      name: 'quorumPortUnification',
      text: 'is on: other members may connect without TLS and without a certificate. Switch it off when all members have sslQuorum=true',
    })
  if (settings.quorumClientAuth !== 'need')
    warnings.push({
      name: 'quorumClientAuth',
      text: `is ${settings.quorumClientAuth}: a program without a certificate may connect as any member`,
    })
  const isUnbound = 'a certificate of the authorities may be used by any member'
  if (!settings.quorumVerifiesHostNames)
    warnings.push({ name: 'quorumVerifiesHostNames', text: `is off: ${isUnbound}` })
  else if (!settings.quorumVerifiesClientHostNames)
    warnings.push({ name: 'quorumVerifiesClientHostNames', text: `is off: ${isUnbound} that connects` })
  return warnings
}
