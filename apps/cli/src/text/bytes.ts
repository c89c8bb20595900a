const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const lenient = new TextDecoder('utf-8', { ignoreBOM: true })

/** The text that bytes are in UTF-8, or undefined when they are none. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return strict.decode(bytes)
  } catch {
    // Not UTF-8, which is what the caller asks.
    return undefined
  }
}

// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g

/** Text for a terminal: control characters, which could move its cursor or change its title, as `\xNN`. */
export const safe = (text: string): string =>
  text.replace(controls, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)

/** The same on one line. */
export const safeLine = (text: string): string => safe(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

/** Data as text that can be looked at; what is no text has replacement characters in it. */
export const safeData = (bytes: Uint8Array): string => safe(lenient.decode(bytes))

/** Bytes in rows of sixteen, with their place before them and the letters among them behind. */
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

/** The beginning of a node's data on one line, quoted; bytes that are no text as a hexadecimal number. */
export function preview(bytes: Uint8Array | null, limit = 60): string {
  if (bytes === null) return 'null'
  const text = decodeUtf8(bytes)
  if (text !== undefined)
    return text.length > limit ? `"${safeLine(text.slice(0, limit))}…"` : `"${safeLine(text)}"`
  const hex = Buffer.from(bytes.subarray(0, limit / 2)).toString('hex')
  return bytes.length > limit / 2 ? `0x${hex}…` : `0x${hex}`
}

/** Data in a JSON object: as text when it is some, else in Base64; null is null. */
export function dataFields(bytes: Uint8Array | null): { data: string | null } | { base64: string } {
  if (bytes === null) return { data: null }
  const text = decodeUtf8(bytes)
  return text === undefined ? { base64: Buffer.from(bytes).toString('base64') } : { data: text }
}
