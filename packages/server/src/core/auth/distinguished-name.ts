/** Keywords of attribute types that Java's `X500Principal` accepts. */
const keywords = new Set(
  'CN C L S ST O OU T IP STREET DC DNQUALIFIER DNQ SURNAME GIVENNAME INITIALS GENERATION EMAIL EMAILADDRESS UID SERIALNUMBER'.split(
    ' ',
  ),
)

const objectIdentifier = /^(?:OID\.)?(?:[01]\.[1-3]?\d|2\.\d+)(?:\.\d+)*$/i

/**
 * Returns whether text is a distinguished name that Java's `X500Principal` accepts: what RFC 2253 and its predecessor allow, so
 * that an ACL entry can contain the subject of a certificate. The empty text is one.
 */
export function isDistinguishedName(text: string): boolean {
  if (text === '') return true
  return split(text, ',;').every((part) => split(part, '+').every(isAttribute))
}

/** Splits at separators that are neither quoted nor escaped. */
function split(text: string, separators: string): string[] {
  const parts: string[] = []
  let start = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!
    if (character === '\\') i++
    else if (character === '"') quoted = !quoted
    else if (!quoted && separators.includes(character)) {
      parts.push(text.slice(start, i))
      start = i + 1
    }
  }
  return [...parts, text.slice(start)]
}

function isAttribute(text: string): boolean {
  const equals = text.indexOf('=')
  if (equals === -1) return false
  const type = text.slice(0, equals).trim()
  return (keywords.has(type.toUpperCase()) || objectIdentifier.test(type)) && isValue(text.slice(equals + 1))
}

/** A backslash and what may follow it. */
const escape = String.raw`\\(?:[,+<>#;"\\= \n]|[0-9a-fA-F]{2})`
const plain = new RegExp(String.raw`^(?:[^<>"\\]|${escape})*$`)
const quoted = new RegExp(String.raw`^"(?:[^"\\]|${escape})*"$`)

function isValue(text: string): boolean {
  const value = text.replace(/^[ \n]+/, '')
  if (value.startsWith('#')) return isDer(value.slice(1))
  return value.startsWith('"') ? quoted.test(value.trimEnd()) : plain.test(value)
}

/** Returns whether hexadecimal digits are one complete DER element. */
function isDer(hex: string): boolean {
  if (!/^(?:[0-9a-f]{2}){2,}$/i.test(hex)) return false
  const bytes = hex.match(/../g)!.map((pair) => Number.parseInt(pair, 16))
  const [, first = 0] = bytes
  if (first < 0x80) return bytes.length === 2 + first
  const count = first - 0x80
  if (count === 0 || count > 4) return false
  const length = bytes.slice(2, 2 + count).reduce((value, byte) => value * 256 + byte, 0)
  return bytes.length === 2 + count + length
}
