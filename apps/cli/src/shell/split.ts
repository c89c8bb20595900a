/**
 * The words of a line as ZooKeeper's shell splits it: quotes of either kind hold a word together, nothing escapes them.
 * Undefined for a line that opens a quote and does not close it.
 */
export function splitWords(line: string): string[] | undefined {
  const word = /\s*(?:"([^"]*)"|'([^']*)'|([^"'\s]\S*))\s*/y
  const words: string[] = []
  let at = 0
  while (word.lastIndex < line.length) {
    const match = word.exec(line)
    if (match === null) return line.slice(at).trim() === '' ? words : undefined
    at = word.lastIndex
    words.push(match[1] ?? match[2] ?? match[3] ?? '')
  }
  return words
}
