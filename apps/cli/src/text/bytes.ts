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

// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Escapes control characters as `\xNN`, so that data cannot move the cursor or change the title of a terminal. Keeps newlines and tabs. */
export const safe = (text: string): string =>
  text.replace(controls, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)

/** Escapes as `safe` does, and also newlines and tabs. */
export const safeLine = (text: string): string => safe(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

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
