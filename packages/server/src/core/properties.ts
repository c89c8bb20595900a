/** A key and its value as a Java properties file spells them. */
export interface Property {
  readonly key: string
  readonly value: string
  /** Where its first line stands, counted from 1. */
  readonly line: number
  /** A backslash before a letter that needs none: it vanishes, which surprises whoever wrote a Windows path. */
  readonly hasLostBackslash: boolean
}

/** A place in the file that cannot be read. */
export interface PropertyError {
  readonly line: number
  readonly reason: string
}

/**
 * Reads the grammar of `java.util.Properties`, which is that of `zoo.cfg`: `key=value`, `key: value` or `key value`,
 * comments with `#` or `!` on lines of their own, a backslash at the end of a line to go on in the next, and the escapes
 * `\t \n \r \f \uXXXX`; before any other character a backslash vanishes. Unlike Java, text is UTF-8 and a byte order
 * mark is dropped. Every key is kept, repeated ones too, in order; values are trimmed as ZooKeeper trims them.
 */
export function parseProperties(text: string): { properties: Property[]; unreadable: PropertyError[] } {
  const properties: Property[] = []
  const unreadable: PropertyError[] = []
  for (const { line, text: logical } of logicalLines(text.replace(/^\uFEFF/, ''))) {
    const [rawKey, rawValue] = split(logical)
    const broken = /\\u(?![\da-fA-F]{4})/.test(logical.replace(/\\\\/g, ''))
    if (broken) unreadable.push({ line, reason: 'expected four hexadecimal digits after \\u' })
    else
      properties.push({
        line,
        key: unescape(rawKey).trim(),
        value: unescape(rawValue).trim(),
        hasLostBackslash: /\\[^\\tnrfu=:#! ]/.test(rawValue.replace(/\\\\/g, '')),
      })
  }
  return { properties, unreadable }
}

/** Lines that matter, joined where a backslash says so, each with the number of its first line. */
function* logicalLines(text: string): Generator<{ line: number; text: string }> {
  const lines = text.split(/\r\n|\n|\r/)
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1
    let logical = lines[at]!.replace(/^[ \t\f]+/, '')
    if (logical === '' || logical.startsWith('#') || logical.startsWith('!')) continue
    while (endsInBackslash(logical)) {
      logical = logical.slice(0, -1)
      // A backslash all alone joins nothing: what follows is a line of its own and may be a comment.
      if (logical === '' || at + 1 >= lines.length) break
      logical += lines[++at]!.replace(/^[ \t\f]+/, '')
    }
    if (logical !== '') yield { line, text: logical }
  }
}

/** An even number of backslashes at the end is that many escaped ones. */
function endsInBackslash(line: string): boolean {
  return /\\*$/.exec(line)![0].length % 2 === 1
}

/** The key ends at the first bare `=`, `:` or blank; one separator and the blanks around it belong to neither side. */
function split(logical: string): [key: string, value: string] {
  const key = /^(?:\\.|[^\\=: \t\f])*/s.exec(logical)![0]
  return [key, logical.slice(key.length).replace(/^[ \t\f]*[=:]?[ \t\f]*/, '')]
}

const named: Record<string, string> = { t: '\t', n: '\n', r: '\r', f: '\f' }

function unescape(raw: string): string {
  return raw.replace(
    /\\(?:u([\da-fA-F]{4})|(.)|$)/gs,
    (_, hex: string | undefined, letter: string | undefined) => {
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
      return letter === undefined ? '' : (named[letter] ?? letter)
    },
  )
}
