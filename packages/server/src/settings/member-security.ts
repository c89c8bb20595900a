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
  const [login] = loginProblems(settings)
  if (login !== undefined) return [login]
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

function* loginProblems(settings: ServerSettings): Generator<SettingProblem> {
  const { quorumSaslEnabled, quorumLearnerRequiresSasl, quorumServerRequiresSasl } = settings
  const asked = quorumLearnerRequiresSasl ? 'quorumLearnerRequiresSasl' : 'quorumServerRequiresSasl'
  if ((quorumLearnerRequiresSasl || quorumServerRequiresSasl) && !quorumSaslEnabled)
    yield { name: asked, text: 'needs quorum.auth.enableSasl=true' }
  if (quorumServerRequiresSasl && !quorumLearnerRequiresSasl)
    yield {
      name: 'quorumServerRequiresSasl',
      text: 'needs quorum.auth.learnerRequireSasl=true: the other members refuse this one otherwise',
    }
  if (!quorumSaslEnabled) return
  if (settings.quorumSecret !== undefined)
    yield { name: 'quorumSaslEnabled', text: 'cannot be on together with quorumSecretFile. Keep one of them' }
  if (Object.keys(settings.quorumSaslUsers).length === 0)
    yield {
      name: 'quorumSaslEnabled',
      text: 'needs users who may log in: a section QuorumServer in the file of jaas.config, with options such as user_bob="password"',
    }
  if (settings.quorumSaslUser === undefined || settings.quorumSaslPassword === undefined)
    yield {
      name: 'quorumSaslEnabled',
      text: 'needs the user and password of this member: a section QuorumLearner in the file of jaas.config, with the options username and password',
    }
}

/** Whether the members share a secret for the passwords of sessions: they can prove who they are, and no file holds one. */
export const sharesSessionSecret = (settings: ServerSettings): boolean =>
  settings.ensemble !== undefined &&
  settings.sessionSecretEnabled &&
  settings.sessionSecretFile === undefined &&
  (settings.quorumSecret !== undefined || settings.quorumSaslEnabled || usesQuorumTls(settings))

/** Returns the settings that weaken the security between members, for warnings at each start. */
export function memberSecurityWarnings(settings: ServerSettings): readonly SettingProblem[] {
  const warnings: SettingProblem[] = []
  if (settings.quorumSaslEnabled && !settings.quorumServerRequiresSasl)
    warnings.push({
      name: 'quorumSaslEnabled',
      text: 'is on, but other members may connect without a login. Set quorum.auth.serverRequireSasl=true when all members log in',
    })
  if (settings.quorumSaslEnabled && Object.keys(settings.quorumUserOf).length === 0)
    warnings.push({
      name: 'quorumUserOf',
      text: 'is empty: a user who logs in may be any member. List the user of each, such as 1:alice,2:bob',
    })
  if (!usesQuorumTls(settings)) return warnings
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
