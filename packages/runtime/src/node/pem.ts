/** Labels of blocks without an end in one text; OpenSSL reads no text like that. */
const MAX_UNENDED = 10

/** Returns the blocks of a text in PEM whose label matches, each with its first and last line. Takes time in proportion to the text. */
export function pemBlocks(text: string, label: RegExp): string[] {
  const blocks: string[] = []
  const unended = new Set<string>()
  const begin = /-----BEGIN ([A-Z0-9 ]{1,64})-----/g
  for (let match = begin.exec(text); match !== null; match = begin.exec(text)) {
    const [, name] = match
    if (!label.test(name!) || unended.has(name!)) continue
    const last = `-----END ${name}-----`
    const at = text.indexOf(last, begin.lastIndex)
    if (at < 0) {
      if (unended.add(name!).size === MAX_UNENDED) break
      continue
    }
    begin.lastIndex = at + last.length
    blocks.push(text.slice(match.index, begin.lastIndex))
  }
  return blocks
}
