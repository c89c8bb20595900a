/** Makes certificates: an authority, and certificates that it signs. Keys are on the curve P-256, and all files are PEM. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  X509Certificate,
  type KeyObject,
} from 'node:crypto'
import { isIP } from 'node:net'
import { AsnConvert, OctetString } from '@peculiar/asn1-schema'
import {
  AlgorithmIdentifier,
  AttributeTypeAndValue,
  AttributeValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  ExtendedKeyUsage,
  Extension,
  Extensions,
  GeneralName,
  id_ce_authorityKeyIdentifier,
  id_ce_basicConstraints,
  id_ce_extKeyUsage,
  id_ce_keyUsage,
  id_ce_subjectAltName,
  id_ce_subjectKeyIdentifier,
  id_kp_clientAuth,
  id_kp_serverAuth,
  KeyIdentifier,
  KeyUsage,
  KeyUsageFlags,
  Name,
  RelativeDistinguishedName,
  SubjectAlternativeName,
  SubjectKeyIdentifier,
  SubjectPublicKeyInfo,
  TBSCertificate,
  Validity,
  Version,
} from '@peculiar/asn1-x509'

/** A certificate with its private key, both in PEM. */
export interface CertificateWithKey {
  readonly certificate: string
  readonly key: string
}

export interface AuthorityOptions {
  /** The common name of the authority. */
  readonly name: string
  readonly days: number
  /** When the certificate begins to be valid; by default, now. */
  readonly from?: Date | undefined
}

export interface IssueOptions extends AuthorityOptions {
  /** Host names and addresses of the owner. */
  readonly hosts: readonly string[]
  /** URIs of the owner, such as `spiffe://zabra/member/1`. */
  readonly uris?: readonly string[] | undefined
}

/** Returns a new authority. */
export function createAuthority({ name, days, from = new Date() }: AuthorityOptions): CertificateWithKey {
  const key = generateKey()
  const subject = commonName(name)
  const certificate = signedCertificate({
    subject,
    issuer: subject,
    owner: key,
    signer: key,
    validity: validityOf(from, days),
    extensions: [
      extension(id_ce_basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), true),
      extension(
        id_ce_keyUsage,
        new KeyUsage(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign | KeyUsageFlags.digitalSignature),
        true,
      ),
    ],
  })
  return { certificate, key: pemOf(key) }
}

/**
 * Returns a certificate that the authority has signed, for both ends of a TLS connection. It ends no later than that of the
 * authority. Throws a `RangeError` when the authority cannot sign, or a name cannot be written.
 */
export function issueCertificate(authority: CertificateWithKey, options: IssueOptions): CertificateWithKey {
  const { name, days, hosts, uris = [], from = new Date() } = options
  const names = new SubjectAlternativeName([...hosts.map(hostName), ...uris.map(uriName)])
  const extensions = names.length === 0 ? [] : [extension(id_ce_subjectAltName, names)]
  return issue(authority, { subject: commonName(name), names: extensions, days, from })
}

/**
 * Returns a certificate with the subject and the alternative names of an older one, and a new key. Throws a `RangeError` when the
 * authority cannot sign.
 */
export function renewCertificate(
  authority: CertificateWithKey,
  older: string,
  { days, from = new Date() }: Pick<IssueOptions, 'days' | 'from'>,
): CertificateWithKey {
  const { tbsCertificate } = AsnConvert.parse(new X509Certificate(older).raw, Certificate)
  const names = tbsCertificate.extensions?.filter(({ extnID }) => extnID === id_ce_subjectAltName) ?? []
  return issue(authority, { subject: tbsCertificate.subject, names, days, from })
}

interface Issue {
  readonly subject: Name
  /** The extension with the alternative names, if there are any. */
  readonly names: readonly Extension[]
  readonly days: number
  readonly from: Date
}

function issue(authority: CertificateWithKey, { subject, names, days, from }: Issue): CertificateWithKey {
  const issuer = new X509Certificate(authority.certificate)
  const signer = createPrivateKey(authority.key)
  if (!issuer.ca)
    throw new RangeError('Expected the certificate of an authority, got one that may not sign others.')
  if (!issuer.checkPrivateKey(signer))
    throw new RangeError('Expected the private key of the authority, got the key of another certificate.')
  const end = new Date(issuer.validTo)
  if (end <= from)
    throw new RangeError(`Expected an authority that is valid, got one that ended at ${end.toISOString()}.`)
  const key = generateKey()
  const certificate = signedCertificate({
    subject,
    issuer: AsnConvert.parse(issuer.raw, Certificate).tbsCertificate.subject,
    owner: key,
    signer,
    validity: validityOf(from, days, end),
    extensions: [
      extension(id_ce_basicConstraints, new BasicConstraints(), true),
      extension(id_ce_keyUsage, new KeyUsage(KeyUsageFlags.digitalSignature), true),
      extension(id_ce_extKeyUsage, new ExtendedKeyUsage([id_kp_serverAuth, id_kp_clientAuth])),
      ...names,
    ],
  })
  return { certificate, key: pemOf(key) }
}

interface Contents {
  readonly subject: Name
  readonly issuer: Name
  readonly owner: KeyObject
  readonly signer: KeyObject
  readonly validity: Validity
  readonly extensions: readonly Extension[]
}

const id_ecdsaWithSha256 = '1.2.840.10045.4.3.2'
const id_rsaWithSha256 = '1.2.840.113549.1.1.11'

function signedCertificate({ subject, issuer, owner, signer, validity, extensions }: Contents): string {
  const signatureAlgorithm =
    signer.asymmetricKeyType === 'rsa'
      ? new AlgorithmIdentifier({ algorithm: id_rsaWithSha256, parameters: null })
      : new AlgorithmIdentifier({ algorithm: id_ecdsaWithSha256 })
  if (signer.asymmetricKeyType !== 'rsa' && signer.asymmetricKeyType !== 'ec')
    throw new RangeError(`Expected an authority with an EC or RSA key, got ${signer.asymmetricKeyType}.`)
  const tbsCertificate = new TBSCertificate({
    version: Version.v3,
    serialNumber: serialNumber(),
    signature: signatureAlgorithm,
    issuer,
    validity,
    subject,
    subjectPublicKeyInfo: AsnConvert.parse(publicKeyOf(owner), SubjectPublicKeyInfo),
    extensions: new Extensions([
      ...extensions,
      extension(id_ce_subjectKeyIdentifier, new SubjectKeyIdentifier(keyIdOf(owner))),
      extension(
        id_ce_authorityKeyIdentifier,
        new AuthorityKeyIdentifier({ keyIdentifier: new KeyIdentifier(keyIdOf(signer)) }),
      ),
    ]),
  })
  const signature = sign('sha256', Buffer.from(AsnConvert.serialize(tbsCertificate)), signer)
  const der = AsnConvert.serialize(
    new Certificate({ tbsCertificate, signatureAlgorithm, signatureValue: exact(signature) }),
  )
  return new X509Certificate(Buffer.from(der)).toString()
}

const generateKey = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey

const pemOf = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }) as string

const publicKeyOf = (key: KeyObject): Buffer =>
  createPublicKey(key as unknown as Parameters<typeof createPublicKey>[0]).export({
    type: 'spki',
    format: 'der',
  })

/** The last 20 bytes of the public key identify it; the identifier needs no meaning. */
const keyIdOf = (key: KeyObject): ArrayBuffer => exact(publicKeyOf(key).subarray(-20))

/** Returns a copy in a buffer of its own, which the library requires. */
const exact = (bytes: Uint8Array): ArrayBuffer => Uint8Array.from(bytes).buffer

/** Returns a positive random number of 16 bytes. */
function serialNumber(): ArrayBuffer {
  const bytes = randomBytes(16)
  bytes[0] = (bytes[0]! & 0x7f) | 0x40
  return exact(bytes)
}

const DAY_MS = 24 * 3600 * 1000

function validityOf(from: Date, days: number, latest?: Date): Validity {
  const end = new Date(from.getTime() + days * DAY_MS)
  return new Validity({ notBefore: from, notAfter: latest !== undefined && latest < end ? latest : end })
}

function commonName(name: string): Name {
  const value = new AttributeValue({ utf8String: name })
  return new Name([new RelativeDistinguishedName([new AttributeTypeAndValue({ type: '2.5.4.3', value })])])
}

const extension = (extnID: string, value: object, critical = false): Extension =>
  new Extension({ extnID, critical, extnValue: new OctetString(AsnConvert.serialize(value)) })

function hostName(host: string): GeneralName {
  if (isIP(host) !== 0) return new GeneralName({ iPAddress: host })
  if (
    !/^(\*\.)?[a-z\d_]([a-z\d_-]*[a-z\d_])?(\.[a-z\d_]([a-z\d_-]*[a-z\d_])?)*$/i.test(host) ||
    host.length > 253
  )
    throw new RangeError(`Expected a host name or an address, got ${JSON.stringify(host.slice(0, 80))}.`)
  return new GeneralName({ dNSName: host })
}

function uriName(uri: string): GeneralName {
  if (!URL.canParse(uri)) throw new RangeError(`Expected a URI, got ${JSON.stringify(uri.slice(0, 80))}.`)
  return new GeneralName({ uniformResourceIdentifier: uri })
}
