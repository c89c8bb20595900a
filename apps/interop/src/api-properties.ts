/** A property in an API report: of an interface, a class, an object type or destructured options. */
export interface ApiProperty {
  readonly name: string
  readonly isOptional: boolean
  readonly type: string
}

const OPEN = new Set('{([<')
const CLOSE = new Set('})]>')

/** Returns the end of the type that begins at `start`: the next separator outside of brackets. */
function endOfType(text: string, start: number): number {
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const letter = text[i]!
    const isArrow = letter === '>' && text[i - 1] === '='
    if (OPEN.has(letter)) depth++
    else if (CLOSE.has(letter) && !isArrow && depth-- === 0) return i
    else if (depth === 0 && (letter === ';' || letter === ',' || (letter === '=' && text[i + 1] !== '>')))
      return i
  }
  return text.length
}

/** Returns the properties with a type that a report names, parameters of functions apart. */
export function propertiesOf(report: string): ApiProperty[] {
  const text = report.replaceAll(/^\/\/.*$/gm, '')
  const properties: ApiProperty[] = []
  const brackets: string[] = []
  const named = /(\w+)(\?)?: |[{}()[\]]/g
  for (const { 0: all, 1: name, 2: mark, index } of text.matchAll(named)) {
    if (name === undefined) {
      if (OPEN.has(all)) brackets.push(all)
      else brackets.pop()
    } else if (brackets.at(-1) === '{') {
      const start = index + all.length
      const type = text.slice(start, endOfType(text, start)).trim()
      properties.push({ name, isOptional: mark !== undefined, type })
    }
  }
  return properties
}
