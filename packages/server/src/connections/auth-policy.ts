import type { PeerIdentity } from '@zabra/runtime'
import { authenticate, identitiesOfCertificate } from '../core/auth/index.ts'
import type { Identity } from '../core/types.ts'
import type { ServerSettings } from '../settings/index.ts'

/** Identities of one connection at most: every access check compares all of them. */
const MAX_IDENTITIES = 100

/** Characters of all of them at most: an `auth` entry of an access control list stands for all. */
const MAX_IDENTITY_CHARS = 16_384

/** Longer credentials, in bytes, are refused before they are hashed. */
const MAX_CREDENTIAL_BYTES = 4096

/** The client that presents credentials. */
export interface CredentialOwner {
  readonly host: string
  readonly identities: readonly Identity[]
  readonly certificateIdentities: readonly Identity[]
}

/** Decides by the settings which credentials prove which identities, and which identities a client must have. */
export class AuthPolicy {
  /** The passwords of SASL users by name. Empty when SASL is off. */
  readonly saslUsers: ReadonlyMap<string, string>
  readonly #settings: ServerSettings
  /** A client needs an identity of one of these schemes. Empty: it needs none. */
  readonly #enforcedSchemes: readonly string[]

  constructor(settings: ServerSettings) {
    this.#settings = settings
    this.saslUsers = saslUsersOf(settings)
    this.#enforcedSchemes = enforcedSchemesOf(settings)
  }

  /** Whether a client without a SASL login is refused every request. */
  get isSaslRequired(): boolean {
    return this.#enforcedSchemes.includes('sasl')
  }

  /** Whether the identities satisfy `enforce.auth.schemes`. */
  isSatisfiedBy(identities: readonly Identity[]): boolean {
    const schemes = this.#enforcedSchemes
    return schemes.length === 0 || identities.some(({ scheme }) => schemes.includes(scheme))
  }

  /** Returns the identities that credentials prove, or undefined when they are wrong or too long, or the client has too many identities. */
  authenticate(
    scheme: string | null,
    credentials: Uint8Array | null,
    { host, identities, certificateIdentities }: CredentialOwner,
  ): readonly Identity[] | undefined {
    if (scheme === 'x509') return certificateIdentities.length > 0 ? certificateIdentities : undefined
    const { digestAuthEnabled, superDigest } = this.#settings
    if ((scheme === 'digest' && !digestAuthEnabled) || identities.length >= MAX_IDENTITIES) return undefined
    if (credentials !== null && credentials.length > MAX_CREDENTIAL_BYTES) return undefined
    const proved = authenticate(scheme, credentials, { remoteIp: host, superDigest })
    if (proved !== undefined && charsOf(identities) + charsOf(proved) > MAX_IDENTITY_CHARS) return undefined
    return proved
  }

  /** Returns the identities of a TLS client certificate; none without a certificate. */
  identitiesOf(peer: PeerIdentity | undefined): readonly Identity[] {
    return peer === undefined ? [] : certificateIdentities(peer, this.#settings)
  }
}

/** Returns the identities of a TLS client certificate by the settings, at ports for clients and for HTTP. */
export const certificateIdentities = (peer: PeerIdentity, settings: ServerSettings): readonly Identity[] =>
  identitiesOfCertificate(peer, {
    superUser: settings.x509SuperUser,
    idType: settings.x509IdType,
    sanType: settings.x509SanType,
    sanMatch: settings.x509SanMatch,
    sanExtract: settings.x509SanExtract,
    sanGroup: settings.x509SanGroup,
  })

const charsOf = (identities: readonly Identity[]): number =>
  identities.reduce((sum, { scheme, id }) => sum + scheme.length + id.length, 0)

function enforcedSchemesOf(settings: ServerSettings): readonly string[] {
  if (settings.requireSasl) return ['sasl']
  return settings.enforceAuthEnabled ? settings.enforceAuthSchemes : []
}

function saslUsersOf({ saslUsers, saslSuperPassword }: ServerSettings): ReadonlyMap<string, string> {
  const users = new Map(Object.entries(saslUsers))
  if (saslSuperPassword !== undefined && users.has('super')) users.set('super', saslSuperPassword)
  return users
}
