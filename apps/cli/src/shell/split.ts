/** The words of a line as ZooKeeper's shell splits it: quotes of either kind hold a word together, nothing escapes them. */
export function split(line: string): string[] {
  const word = /\s*(?:"([^"]*)"|'([^']*)'|([^"'\s]\S*))\s*/y
  const words: string[] = []
  while (word.lastIndex < line.length) {
    const match = word.exec(line)
    // What is left is a quote without its other half, or nothing but blanks.
    if (match === null) break
    words.push(match[1] ?? match[2] ?? match[3] ?? '')
  }
  return words
}
