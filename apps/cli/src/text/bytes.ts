const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** Decodes UTF-8; returns undefined when the bytes are not valid UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    // Invalid UTF-8 is an expected result.
    return undefined
  }
}

/**
 * Control characters except newline and tab; bidirectional controls, zero-width and other invisible characters, and line and
 * paragraph separators.
 */
const unsafe =
  // oxlint-disable-next-line no-control-regex no-misleading-character-class -- matches control characters on purpose
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu

const escapeCharacter = (character: string): string => {
  const code = character.codePointAt(0)!
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`
  return code < 0x1_0000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`
}

/**
 * Escapes control characters as `\xNN` and invisible ones as `\uNNNN`, so that data cannot move the cursor of a terminal, change
 * its title, reorder a line or hide text in it. Keeps newlines and tabs.
 */
export const safe = (text: string): string => text.replace(unsafe, escapeCharacter)

/** Escapes as `safe` does, and also newlines and tabs. */
export const safeLine = (text: string): string => safe(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

/** Escapes the same characters in JSON, whose value stays the same. */
export const safeJson = (json: string): string =>
  json.replace(unsafe, (character) =>
    Array.from({ length: character.length }, (_, at) => {
      const unit = character.charCodeAt(at).toString(16).padStart(4, '0')
      return `\\u${unit}`
    }).join(''),
  )

/** Decodes data for a terminal, with replacement characters for invalid UTF-8. */
export const safeData = (bytes: Uint8Array): string => safe(lenient.decode(bytes))

/** Formats bytes as a hex dump: offset, sixteen bytes and their printable ASCII characters per row. */
export function hexDump(bytes: Uint8Array): string[] {
  const lines: string[] = []
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    const letters = row
      .map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.'))
      .join('')
    lines.push(`${at.toString(16).padStart(8, '0')}  ${hex.padEnd(47)}  ${letters}`)
  }
  return lines
}

/** Formats the beginning of a node's data on one line: text in quotes, other bytes in hexadecimal. */
export function preview(bytes: Uint8Array | null, limit = 60): string {
  if (bytes === null) return 'null'
  const text = decodeUtf8(bytes)
  if (text !== undefined)
    return text.length > limit ? `"${safeLine(text.slice(0, limit))}…"` : `"${safeLine(text)}"`
  const hex = Buffer.from(bytes.subarray(0, limit / 2)).toString('hex')
  return bytes.length > limit / 2 ? `0x${hex}…` : `0x${hex}`
}

/** Returns data as a JSON field: `data` with text or null, `base64` when the bytes are not UTF-8. */
export function dataFields(bytes: Uint8Array | null): { data: string | null } | { base64: string } {
  if (bytes === null) return { data: null }
  const text = decodeUtf8(bytes)
  return text === undefined ? { base64: Buffer.from(bytes).toString('base64') } : { data: text }
}
