import { NetworkError, type NetworkFactories, type TlsNetwork, type TlsOptions } from '@zabra/runtime'
import { storeOf } from '../../connections/certificates.ts'
import { usesAdminTls, type ServerSettings } from '../../settings/index.ts'

/** Returns the network of the HTTP port; undefined without TLS. Throws a `NetworkError` when the program has none. */
export function adminTls(
  settings: ServerSettings,
  factories: NetworkFactories | undefined,
): TlsNetwork | undefined {
  if (!usesAdminTls(settings)) return undefined
  if (factories?.tls === undefined)
    throw new NetworkError(
      'The HTTP port cannot use TLS: this program gave the server no network for it. Pass one in networkFactories of its platform.',
      'ENOTSUP',
    )
  return factories.tls(tlsOptionsOf(settings))
}

/** Returns the options of TLS for the HTTP port; undefined without TLS. */
export const adminTlsOptions = (settings: ServerSettings): TlsOptions | undefined =>
  settings.adminEnabled && usesAdminTls(settings) ? tlsOptionsOf(settings) : undefined

/** The stores of the HTTP port come before those of members, as in Apache ZooKeeper, and those before the ones of clients. */
const tlsOptionsOf = (settings: ServerSettings): TlsOptions => ({
  keyStore:
    storeOf(settings, 'adminKeyStore') ??
    storeOf(settings, 'quorumKeyStore') ??
    storeOf(settings, 'sslKeyStore'),
  trustStore:
    storeOf(settings, 'adminTrustStore') ??
    storeOf(settings, 'quorumTrustStore') ??
    storeOf(settings, 'sslTrustStore'),
  clientAuth: settings.adminNeedClientAuth ? 'need' : settings.adminClientAuth,
  handshakeLimit: settings.adminMaxConnections,
  // Silent connections must not keep probes out: a refused probe restarts a healthy server.
  replacesHandshakes: true,
})
