const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true })
const PLAIN = /^[A-Za-z0-9_:@~+,=()[\]{}! $&'*;<>?^`|"-]$/

/**
 * A name for one level of a path, of any text. What servers refuse in paths, and what lies outside ASCII, is written as
 * percent signs and the bytes of UTF-8 in hexadecimal; so are dots of a name that has nothing else. The empty text is `%`.
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

/** The text of a name; undefined when it is none that `encodeName` makes. */
export function decodeName(name: string): string | undefined {
  if (name === '%') return ''
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
