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
import { Certificate, GeneralName, id_ce_subjectAltName } from '@peculiar/asn1-x509'
import { AlternativeNameType, type AlternativeName, type PeerIdentity } from '../network.ts'

/** A sequence whose elements stay in DER, to be parsed one by one. */
class EncodedSequence extends AsnArray<ArrayBuffer> {}
AsnType({ type: AsnTypeTypes.Sequence, itemType: AsnPropTypes.Any })(EncodedSequence)

/**
 * An attribute whose value stays in DER. The library turns the bytes of a malformed UTF8String into characters, so that one
 * certificate would have the name of another.
 */
class EncodedAttribute {
  type = ''
  value: ArrayBuffer | null = null
}
AsnProp({ type: AsnPropTypes.ObjectIdentifier })(EncodedAttribute.prototype, 'type')
AsnProp({ type: AsnPropTypes.Any })(EncodedAttribute.prototype, 'value')

class NamePart extends AsnArray<EncodedAttribute> {}
AsnType({ type: AsnTypeTypes.Set, itemType: EncodedAttribute })(NamePart)

class Name extends AsnArray<NamePart> {}
AsnType({ type: AsnTypeTypes.Sequence, itemType: NamePart })(Name)

/** The choice `directoryName` of a `GeneralName`. */
class DirectoryName {
  name = new Name()
}
AsnProp({ type: Name, context: 4 })(DirectoryName.prototype, 'name')
AsnType({ type: AsnTypeTypes.Choice })(DirectoryName)

/** The choice `iPAddress` of a `GeneralName`, as bytes: the text of the library leaves out zeros, Java's does not. */
class IpAddress {
  bytes = new OctetString()
}
AsnProp({ type: OctetString, context: 7, implicit: true })(IpAddress.prototype, 'bytes')
AsnType({ type: AsnTypeTypes.Choice })(IpAddress)

/** Returns the identity that a certificate in DER gives its owner. Throws a `RangeError` when the bytes are no certificate. */
export function identityOf(certificate: Uint8Array): PeerIdentity {
  try {
    const { tbsCertificate, tbsCertificateRaw } = AsnConvert.parse(certificate, Certificate)
    const { extensions = [] } = tbsCertificate
    const extension = extensions.find(({ extnID }) => extnID === id_ce_subjectAltName)
    const names = extension === undefined ? [] : AsnConvert.parse(extension.extnValue, EncodedSequence)
    return {
      subject: distinguishedName(AsnConvert.parse(encodedSubject(tbsCertificateRaw!), Name)),
      alternativeNames: [...names].flatMap(alternativeName),
    }
  } catch (error) {
    throw new RangeError('Expected a certificate in DER', { cause: error })
  }
}

/** Returns the subject in DER: the fifth field, behind a version that may be missing. */
function encodedSubject(tbsCertificate: ArrayBuffer): ArrayBuffer {
  const fields = AsnConvert.parse(tbsCertificate, EncodedSequence)
  return fields[new Uint8Array(fields[0]!)[0] === VERSION_TAG ? 5 : 4]!
}

const VERSION_TAG = 0xa0

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
      return distinguishedName(AsnConvert.parse(encoded, DirectoryName).name)
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

function attribute({ type, value }: EncodedAttribute): string {
  const keyword = keywords[type]
  const bytes = value === null ? NULL : new Uint8Array(value)
  const text = textOf(bytes)
  if (keyword !== undefined && text !== undefined) return `${keyword}=${escaped(text)}`
  return `${keyword ?? type}=#${Buffer.from(bytes).toString('hex')}`
}

/** What the library returns as null. */
const NULL = Uint8Array.of(5, 0)

/** Returns the text of a value in DER, or undefined when its type is not one of text. */
function textOf(encoded: Uint8Array): string | undefined {
  const lengthBytes = encoded[1]! < 0x80 ? 0 : encoded[1]! & 0x7f
  return decoders[encoded[0]!]?.(Buffer.from(encoded.subarray(2 + lengthBytes)))
}

/** Decodes a string of two bytes a character. */
const bmpText = (bytes: Buffer): string =>
  Buffer.from(bytes.subarray(0, bytes.length & ~1))
    .swap16()
    .toString('utf16le')

/** Decodes a string of four bytes a character. */
const universalText = (bytes: Buffer): string =>
  Array.from({ length: bytes.length >> 2 }, (_, i) => bytes.readUInt32BE(i * 4))
    .map((code) => (code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd'))
    .join('')

const asciiText = (bytes: Buffer): string => ascii(bytes.toString('latin1'))

/** The string types of ASN.1 by their tags. */
const decoders: Readonly<Record<number, (bytes: Buffer) => string>> = {
  0x0c: (bytes) => new TextDecoder().decode(bytes),
  0x13: asciiText,
  0x14: (bytes) => bytes.toString('latin1'),
  0x16: asciiText,
  0x1b: asciiText,
  0x1c: universalText,
  0x1e: bmpText,
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
