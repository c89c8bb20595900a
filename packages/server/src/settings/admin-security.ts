import type { SettingProblem } from './member-security.ts'
import type { ServerSettings } from './table.ts'

/** Whether the HTTP port accepts TLS. */
export const usesAdminTls = ({ adminForceHttps, adminPortUnification }: ServerSettings): boolean =>
  adminForceHttps || adminPortUnification

/** Returns the contradictions in the settings for TLS on the HTTP port. */
export function adminSecurityProblems(settings: ServerSettings): readonly SettingProblem[] {
  const { adminKeyStoreLocation, quorumKeyStoreLocation, sslKeyStoreLocation } = settings
  const keyStore = adminKeyStoreLocation ?? quorumKeyStoreLocation ?? sslKeyStoreLocation
  if (!settings.adminEnabled || !usesAdminTls(settings) || keyStore !== undefined) return []
  return [
    {
      name: settings.adminForceHttps ? 'adminForceHttps' : 'adminPortUnification',
      text: 'needs admin.ssl.keyStore.location, the file with the private key and the certificate of the HTTP port; ssl.quorum.keyStore.location and ssl.keyStore.location serve too',
    },
  ]
}
