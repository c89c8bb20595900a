/**
 * Splits a line into words as ZooKeeper's shell does: single or double quotes enclose a word, and there is no escape character.
 * Returns undefined for an unclosed quote.
 */
export function splitWords(line: string): string[] | undefined {
  const word = /\s*(?:"([^"]*)"|'([^']*)'|([^"'\s]\S*))\s*/y
  const words: string[] = []
  let end = 0
  while (word.lastIndex < line.length) {
    const match = word.exec(line)
    if (match === null) return line.slice(end).trim() === '' ? words : undefined
    end = word.lastIndex
    words.push(match[1] ?? match[2] ?? match[3] ?? '')
  }
  return words
}
