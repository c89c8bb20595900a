import { elements, oidOf, readDer, type Der } from './der.ts'

/** One of the further names that a certificate gives its owner. `type` is its number in RFC 5280. */
export interface AlternativeName {
  readonly type: number
  readonly value: string
}

/** The name types of RFC 5280 whose values are text. */
export const AlternativeNameType = { email: 1, dns: 2, directory: 4, uri: 6, ip: 7, registered: 8 } as const

const SUBJECT_ALT_NAME = '2.5.29.17'

/** The fields of a certificate from the serial number on; an explicit version is left out. */
function fields(certificate: Uint8Array): Der[] {
  const [body] = elements(readDer(certificate))
  const all = elements(body!)
  return all[0]?.tag === 0xa0 ? all.slice(1) : all
}

/** The subject of a certificate in the words of RFC 2253, byte for byte as Java's `X500Principal.getName()` has it. */
export function subjectOf(certificate: Uint8Array): string {
  const subject = fields(certificate)[4]
  if (subject === undefined) throw new RangeError('Expected a certificate with a subject')
  return distinguishedName(subject)
}

/** The subject alternative names of a certificate that can be written as text, in their order. */
export function alternativeNamesOf(certificate: Uint8Array): AlternativeName[] {
  const extensions = fields(certificate).find(({ tag }) => tag === 0xa3)
  if (extensions === undefined) return []
  for (const extension of elements(elements(extensions)[0]!)) {
    const parts = elements(extension)
    if (oidOf(parts[0]!) !== SUBJECT_ALT_NAME) continue
    return elements(readDer(parts.at(-1)!.content)).flatMap(alternativeName)
  }
  return []
}

function alternativeName({ tag, content }: Der): AlternativeName[] {
  const type = tag & 0x1f
  switch (type) {
    case AlternativeNameType.email:
    case AlternativeNameType.dns:
    case AlternativeNameType.uri:
      return [{ type, value: ascii(content) }]
    case AlternativeNameType.directory:
      return [{ type, value: distinguishedName(readDer(content)) }]
    case AlternativeNameType.ip:
      return [{ type, value: address(content) }]
    case AlternativeNameType.registered:
      return [{ type, value: oidOf({ content }) }]
    default:
      return []
  }
}

function address(bytes: Uint8Array): string {
  if (bytes.length !== 16) return bytes.join('.')
  return Array.from({ length: 8 }, (_, i) => ((bytes[i * 2]! << 8) | bytes[i * 2 + 1]!).toString(16)).join(
    ':',
  )
}

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

/** A name, the last part first. */
function distinguishedName(name: Der): string {
  return elements(name)
    .reverse()
    .map((part) => elements(part).map(attribute).join('+'))
    .join(',')
}

function attribute(pair: Der): string {
  const [type, value] = elements(pair)
  const oid = oidOf(type!)
  const keyword = keywords[oid]
  const decode = decoders[value!.tag]
  if (keyword !== undefined && decode !== undefined) return `${keyword}=${escaped(decode(value!.content))}`
  return `${keyword ?? oid}=#${hex(value!.whole)}`
}

function escaped(text: string): string {
  const inner = text.replace(/[,=+<>#;"\\]/g, '\\$&').replaceAll('\0', '\\00')
  const lead = /^[ \r]*/.exec(inner)![0].length
  const trail = lead === inner.length ? 0 : /[ \r]*$/.exec(inner)![0].length
  const end = inner.length - trail
  const blanks = (from: number, to: number): string => inner.slice(from, to).replace(/[ \r]/g, '\\$&')
  return blanks(0, lead) + inner.slice(lead, end) + blanks(end, inner.length)
}

const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
const latin1 = (bytes: Uint8Array): string => [...bytes].map((byte) => String.fromCharCode(byte)).join('')
const ascii = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => (byte < 0x80 ? String.fromCharCode(byte) : '\ufffd')).join('')
const utf8 = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const wide =
  (width: 2 | 4) =>
  (bytes: Uint8Array): string => {
    let text = ''
    for (let at = 0; at + width <= bytes.length; at += width) {
      const code = bytes.subarray(at, at + width).reduce((value, byte) => value * 256 + byte, 0)
      text +=
        code <= 0x10ffff ? (width === 2 ? String.fromCharCode(code) : String.fromCodePoint(code)) : '\ufffd'
    }
    return text
  }

/** The string types of ASN.1 by their tag. */
const decoders: Readonly<Record<number, (bytes: Uint8Array) => string>> = {
  0x0c: utf8,
  0x13: ascii,
  0x14: latin1,
  0x16: ascii,
  0x1b: ascii,
  0x1c: wide(4),
  0x1e: wide(2),
}
