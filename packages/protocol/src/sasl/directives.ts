/**
 * A text of DIGEST-MD5 with one character per byte. Texts stay undecoded until their charset is known, since bytes are hashed.
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

/** Decodes UTF-8. Returns undefined when the bytes are malformed. */
export function fromUtf8(text: ByteText): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fromByteText(text))
  } catch {
    return undefined
  }
}

/** Returns whether a text is in ISO 8859-1, and therefore equal to its `ByteText`. */
export const isLatin1 = (text: string): boolean => !/[\u0100-\uffff]/.test(text)

// A separator, or a name and its value, which is quoted or a token, with optional blanks around each.
const element =
  /[ \t\r\n]*(?:,|$|([!#$%&'*+\-.^_`|~\w]+)[ \t\r\n]*=[ \t\r\n]*(?:"((?:[^"\\]|\\[^])*)"|([^\s",]+))[ \t\r\n]*(?:,|$))/y

/**
 * Parses the directives of a challenge or response: their names in lower case, each with all its values. Returns undefined when
 * the text is malformed. Takes time linear in the length, which the caller limits.
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

/** Returns a value in quotation marks, with backslashes before quotation marks and backslashes. */
export const quoted = (text: ByteText): ByteText => `"${text.replace(/["\\]/g, '\\$&')}"`
