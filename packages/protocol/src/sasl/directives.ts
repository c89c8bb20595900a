/**
 * Texts of DIGEST-MD5 are kept as they come, one character for each byte, until it is known what encodes them: their
 * hashes are made of bytes.
 */
export type ByteText = string

export function toByteText(bytes: Uint8Array): ByteText {
  let text = ''
  for (const byte of bytes) text += String.fromCharCode(byte)
  return text
}

export function fromByteText(text: ByteText): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

export function utf8(text: string): ByteText {
  return toByteText(new TextEncoder().encode(text))
}

/** The text that the bytes are in UTF-8, or undefined when they are none. */
export function fromUtf8(text: ByteText): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromByteText(text))
  } catch {
    return undefined
  }
}

/** Whether ISO 8859-1 has all of its characters: then the text and its bytes are the same to us. */
export const isLatin1 = (text: string): boolean => !/[\u0100-\uffff]/.test(text)

// A separator, or a name and its value, which is quoted or a bare word; blanks may stand around all of them.
const element =
  /[ \t\r\n]*(?:,|$|([!#$%&'*+\-.^_`|~\w]+)[ \t\r\n]*=[ \t\r\n]*(?:"((?:[^"\\]|\\[^])*)"|([^\s",]+))[ \t\r\n]*(?:,|$))/y

/**
 * The directives of a challenge or a response by their names in lower case, each with all its values; undefined when the
 * text is not a list of them. Takes time in proportion to the length, which the caller bounds.
 */
export function parseDirectives(text: ByteText): ReadonlyMap<string, readonly ByteText[]> | undefined {
  const directives = new Map<string, ByteText[]>()
  element.lastIndex = 0
  while (element.lastIndex < text.length) {
    const match = element.exec(text)
    if (match === null) return undefined
    const [, name, quoted, bare] = match
    if (name === undefined) continue
    const value = quoted === undefined ? bare! : quoted.replace(/\\([^])/g, '$1')
    const values = directives.get(name.toLowerCase())
    if (values === undefined) directives.set(name.toLowerCase(), [value])
    else values.push(value)
  }
  return directives
}

/** The value in quotation marks, with a backslash before what would end it. */
export const quoted = (text: ByteText): ByteText => `"${text.replace(/["\\]/g, '\\$&')}"`
