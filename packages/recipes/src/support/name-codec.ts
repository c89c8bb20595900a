const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })
const PLAIN = /^[A-Za-z0-9_:@~+,=()[\]{}! $&'*;<>?^`|"-]$/
/** A name that is its own text. Most are: to decode them letter by letter would cost a view of many members its speed. */
const OWN_TEXT = /^(?!\.{1,2}$)[A-Za-z0-9_:@~+,=()[\]{}! $&'*;<>?^`|".-]+$/

/**
 * Encodes any text as the name of one path level. Characters that servers refuse, and those outside ASCII, become
 * percent-encoded UTF-8; so do the dots of `.` and `..`. The empty text becomes `%`.
 */
export function encodeName(text: string): string {
  if (text === '') return '%'
  const onlyDots = text === '.' || text === '..'
  return Array.from(text, (letter) => {
    if (PLAIN.test(letter) || (letter === '.' && !onlyDots)) return letter
    return Array.from(
      encoder.encode(letter),
      (byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join('')
  }).join('')
}

/** Decodes a name; returns undefined for a name that `encodeName` does not produce. */
export function decodeName(name: string): string | undefined {
  if (name === '%') return ''
  if (OWN_TEXT.test(name)) return name
  try {
    const bytes: number[] = []
    for (let at = 0; at < name.length; at++) {
      if (name[at] !== '%') bytes.push(...encoder.encode(name[at]))
      else {
        const hex = name.slice(at + 1, at + 3)
        if (!/^[0-9A-F]{2}$/.test(hex)) return undefined
        bytes.push(Number.parseInt(hex, 16))
        at += 2
      }
    }
    const text = decoder.decode(new Uint8Array(bytes))
    return encodeName(text) === name ? text : undefined
  } catch {
    return undefined
  }
}
