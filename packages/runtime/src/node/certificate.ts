/** Reads certificates with a library, since `X509Certificate` of Node keeps neither the types nor the bytes of their names. */
import {
  AsnArray,
  AsnConvert,
  AsnProp,
  AsnPropTypes,
  AsnType,
  AsnTypeTypes,
  OctetString,
} from '@peculiar/asn1-schema'
import {
  Certificate,
  GeneralName,
  id_ce_subjectAltName,
  type AttributeTypeAndValue,
  type AttributeValue,
  type Name,
} from '@peculiar/asn1-x509'
import { AlternativeNameType, type AlternativeName, type PeerIdentity } from '../network.ts'

/** Names in DER: each is parsed alone, so that one that cannot be read does not hide the others. */
class EncodedNames extends AsnArray<ArrayBuffer> {}
AsnType({ type: AsnTypeTypes.Sequence, itemType: AsnPropTypes.Any })(EncodedNames)

/** The choice `iPAddress` of a `GeneralName`, as bytes: the text of the library leaves out zeros, Java's does not. */
class IpAddress {
  bytes = new OctetString()
}
AsnProp({ type: OctetString, context: 7, implicit: true })(IpAddress.prototype, 'bytes')
AsnType({ type: AsnTypeTypes.Choice })(IpAddress)

/** Returns the identity that a certificate in DER gives its owner. Throws a `RangeError` when the bytes are no certificate. */
export function identityOf(certificate: Uint8Array): PeerIdentity {
  try {
    const { subject, extensions = [] } = AsnConvert.parse(certificate, Certificate).tbsCertificate
    const extension = extensions.find(({ extnID }) => extnID === id_ce_subjectAltName)
    const names = extension === undefined ? [] : AsnConvert.parse(extension.extnValue, EncodedNames)
    return { subject: distinguishedName(subject), alternativeNames: [...names].flatMap(alternativeName) }
  } catch (error) {
    throw new RangeError('Expected a certificate in DER', { cause: error })
  }
}

/** Returns a name that can be written as text, with its type; nothing for names of other types. */
function alternativeName(encoded: ArrayBuffer): AlternativeName[] {
  const type = new Uint8Array(encoded)[0]! & 0x1f
  const value = alternativeNameText(type, encoded)
  return value === undefined ? [] : [{ type, value }]
}

function alternativeNameText(type: number, encoded: ArrayBuffer): string | undefined {
  const parse = (): GeneralName => AsnConvert.parse(encoded, GeneralName)
  switch (type) {
    case AlternativeNameType.email:
      return ascii(parse().rfc822Name!)
    case AlternativeNameType.dns:
      return ascii(parse().dNSName!)
    case AlternativeNameType.directory:
      return distinguishedName(parse().directoryName!)
    case AlternativeNameType.uri:
      return ascii(parse().uniformResourceIdentifier!)
    case AlternativeNameType.ip:
      return addressText(new Uint8Array(AsnConvert.parse(encoded, IpAddress).bytes.buffer))
    case AlternativeNameType.registered:
      return parse().registeredID!
    default:
      return undefined
  }
}

/** Returns an address as Java writes it: IPv6 with all eight groups. */
function addressText(bytes: Uint8Array): string {
  if (bytes.length !== 16) return bytes.join('.')
  const view = new DataView(bytes.buffer, bytes.byteOffset)
  return Array.from({ length: 8 }, (_, i) => view.getUint16(i * 2).toString(16)).join(':')
}

/** Attribute types that RFC 2253 writes with a keyword. */
const keywords: Readonly<Record<string, string>> = {
  '2.5.4.3': 'CN',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '0.9.2342.19200300.100.1.1': 'UID',
  '0.9.2342.19200300.100.1.25': 'DC',
}

/** Returns a name in the form of RFC 2253, its last part first, byte for byte as Java's `X500Principal.getName()`. */
function distinguishedName(name: Name): string {
  return [...name]
    .reverse()
    .map((part) => [...part].map(attribute).join('+'))
    .join(',')
}

function attribute({ type, value }: AttributeTypeAndValue): string {
  const keyword = keywords[type]
  const text = textOf(value)
  if (keyword !== undefined && text !== undefined) return `${keyword}=${escaped(text)}`
  return `${keyword ?? type}=#${Buffer.from(AsnConvert.serialize(value)).toString('hex')}`
}

/** Returns the text of a value, or undefined when its type is not one of text. */
function textOf(value: AttributeValue): string | undefined {
  const { utf8String, bmpString, universalString, teletexString, printableString, ia5String } = value
  const narrow = printableString ?? ia5String
  return narrow === undefined ? (utf8String ?? bmpString ?? universalString ?? teletexString) : ascii(narrow)
}

/** Replaces what ASCII lacks. */
const ascii = (text: string): string => text.replaceAll(/[^\0-\x7f]/g, '\ufffd')

function escaped(text: string): string {
  const inner = text.replace(/[,=+<>#;"\\]/g, '\\$&').replaceAll('\0', '\\00')
  const lead = /^[ \r]*/.exec(inner)![0].length
  const trail = lead === inner.length ? 0 : /[ \r]*$/.exec(inner)![0].length
  const end = inner.length - trail
  const blanks = (from: number, to: number): string => inner.slice(from, to).replace(/[ \r]/g, '\\$&')
  return blanks(0, lead) + inner.slice(lead, end) + blanks(end, inner.length)
}
