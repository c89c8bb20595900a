/** An entry of a Java properties file. */
export interface Property {
  readonly key: string
  readonly value: string
  /** Number of its first line, from 1. */
  readonly line: number
  /** Whether the value has a backslash before a character that needs no escape. It is dropped, which breaks Windows paths. */
  readonly hasLostBackslash: boolean
}

/** A syntax error. */
export interface PropertyError {
  readonly line: number
  readonly reason: string
}

/**
 * Parses the format of `java.util.Properties`, which `zoo.cfg` has: `key=value`, `key: value` or `key value`, comments with `#` or
 * `!` on lines of their own, a backslash at the end of a line to continue it, and the escapes `\t \n \r \f \uXXXX`; a backslash
 * before any other character is dropped. Unlike in Java, text is UTF-8 and a byte order mark is dropped. Returns all entries in
 * order, repeated keys too; values are trimmed as Apache ZooKeeper does.
 */
export function parseProperties(text: string): { properties: Property[]; unreadable: PropertyError[] } {
  const properties: Property[] = []
  const unreadable: PropertyError[] = []
  for (const { line, text: logical } of logicalLines(text.replace(/^\uFEFF/, ''))) {
    const [rawKey, rawValue] = split(logical)
    const hasInvalidEscape = /\\u(?![\da-fA-F]{4})/.test(logical.replace(/\\\\/g, ''))
    if (hasInvalidEscape) unreadable.push({ line, reason: 'expected four hexadecimal digits after \\u' })
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

/** Yields lines that are neither empty nor comments, joined at trailing backslashes, with the number of the first line. */
function* logicalLines(text: string): Generator<{ line: number; text: string }> {
  const lines = text.split(/\r\n|\n|\r/)
  for (let at = 0; at < lines.length; at++) {
    const line = at + 1
    let last = lines[at]!.replace(/^[ \t\f]+/, '')
    if (last === '' || last.startsWith('#') || last.startsWith('!')) continue
    let joined = ''
    while (endsInBackslash(last)) {
      joined += last.slice(0, -1)
      last = ''
      // A backslash alone joins nothing: the next line is a line of its own and may be a comment.
      if (joined === '' || at + 1 >= lines.length) break
      last = lines[++at]!.replace(/^[ \t\f]+/, '')
    }
    const logical = joined + last
    if (logical !== '') yield { line, text: logical }
  }
}

/** Returns whether a line continues: an even number of backslashes at its end are escaped ones. */
function endsInBackslash(line: string): boolean {
  // A regular expression would look at each run of backslashes as often as it is long.
  let at = line.length
  while (at > 0 && line[at - 1] === '\\') at--
  return (line.length - at) % 2 === 1
}

/** Splits a line at the first unescaped `=`, `:` or blank, and drops one separator and the blanks around it. */
function split(logical: string): [key: string, value: string] {
  const key = /^(?:\\.|[^\\=: \t\f])*/s.exec(logical)![0]
  return [key, logical.slice(key.length).replace(/^[ \t\f]*[=:]?[ \t\f]*/, '')]
}

const escapes: Record<string, string> = { t: '\t', n: '\n', r: '\r', f: '\f' }

function unescape(raw: string): string {
  return raw.replace(
    /\\(?:u([\da-fA-F]{4})|(.)|$)/gs,
    (_, hex: string | undefined, letter: string | undefined) => {
      if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
      return letter === undefined ? '' : (escapes[letter] ?? letter)
    },
  )
}
