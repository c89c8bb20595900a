import { readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

interface Declarations {
  /** The declarations of a file by name; overloads of a function are several. */
  readonly own: ReadonlyMap<string, readonly string[]>
  /** Where an imported or re-exported name comes from. */
  readonly from: ReadonlyMap<string, Origin>
  /** The files that are imported as a whole, by the name of the import. */
  readonly whole: ReadonlyMap<string, string>
  readonly exported: readonly string[]
}

interface Origin {
  readonly file: string
  readonly name: string
}

const START = /^(?:export|declare|import|type|interface|class|abstract|const|function|enum)\b/
const NAME =
  /^(?:export )?(?:declare )?(?:abstract )?(?:const|let|class|interface|type|function|enum) ([\w$]+)/
const WHOLE = /^import (?:type )?\* as ([\w$]+) from ['"]([^'"]+)['"]/
const ALL_FROM = /^export \* from ['"](\.[^'"]+)['"];?$/
const NAMES_FROM = /^(import|export) (?:type )?\{([\s\S]*?)\}(?: from ['"]([^'"]+)['"])?;?$/

/**
 * Returns the public API of a built package as text: the names that each entry point exports, and all declarations that
 * they reach within the package, without comments. The compiler writes declaration files in one layout, which this reads by
 * lines; it throws for a statement that it does not know.
 */
export function apiReport(folder: string, entries: ReadonlyMap<string, string>): string {
  const dist = join(folder, 'dist')
  const files = new Map<string, Declarations>()
  const reached = new Map<string, Set<string>>()

  const declarationsOf = (file: string): Declarations => {
    let found = files.get(file)
    if (found === undefined) files.set(file, (found = parse(file, declarationsOf)))
    return found
  }

  const reach = ({ file, name }: Origin): void => {
    // Another package has a report of its own.
    if (!file.startsWith(dist)) return
    const { own, from, whole } = declarationsOf(file)
    const texts = own.get(name)
    if (texts === undefined) {
      const origin = from.get(name)
      if (origin !== undefined) reach(origin)
      return
    }
    const names = reached.get(file) ?? new Set()
    if (names.has(name)) return
    reached.set(file, names.add(name))
    for (const text of texts) {
      for (const [word] of text.matchAll(/[\w$]+/g))
        if (own.has(word) || from.has(word)) reach({ file, name: word })
      for (const [, space = '', member = ''] of text.matchAll(/([\w$]+)\.([\w$]+)/g))
        if (whole.has(space)) reach({ file: whole.get(space)!, name: member })
      for (const [, path = '', inline = ''] of text.matchAll(/import\("([^"]+)"\)\.([\w$]+)/g))
        reach({ file: resolveFrom(file, path), name: inline })
    }
  }

  const lines: string[] = []
  for (const [entry, file] of entries) {
    const names = declarationsOf(file).exported
    lines.push(`// ${entry}`, ...names.toSorted().map((name) => `//   ${name}`), '')
    for (const name of names) reach({ file, name })
  }
  for (const file of [...reached.keys()].toSorted()) {
    lines.push(`// ${relative(dist, file)}`, '')
    const { own } = declarationsOf(file)
    for (const name of [...reached.get(file)!].toSorted()) lines.push(...own.get(name)!, '')
  }
  return lines.join('\n')
}

/** Returns the statements of a declaration file by the names that they declare, import or export. */
function parse(file: string, declarationsOf: (file: string) => Declarations): Declarations {
  const own = new Map<string, string[]>()
  const from = new Map<string, Origin>()
  const whole = new Map<string, string>()
  const exported = new Set<string>()
  for (const statement of statementsOf(file)) {
    // Another package.
    if (/^import .* from ['"][^.]/.test(statement)) continue
    const name = NAME.exec(statement)?.[1]
    if (name !== undefined) {
      own.set(name, [...(own.get(name) ?? []), statement])
      if (statement.startsWith('export')) exported.add(name)
      continue
    }
    const [, space, source] = WHOLE.exec(statement) ?? []
    if (space !== undefined) {
      whole.set(space, resolveFrom(file, source!))
      continue
    }
    const [, every] = ALL_FROM.exec(statement) ?? []
    if (every !== undefined) {
      const source = resolveFrom(file, every)
      for (const one of declarationsOf(source).exported) {
        exported.add(one)
        from.set(one, { file: source, name: one })
      }
      continue
    }
    const [, kind, list, path] = NAMES_FROM.exec(statement) ?? []
    if (list === undefined)
      throw new Error(`${file}: expected a declaration, or names one by one, got ${statement.split('\n')[0]}`)
    for (const part of list.split(',').filter((text) => text.trim() !== '')) {
      const [original = '', alias = original] = part
        .trim()
        .replace(/^type /, '')
        .split(' as ')
      if (kind === 'export') exported.add(alias)
      if (path !== undefined) from.set(alias, { file: resolveFrom(file, path), name: original })
    }
  }
  return { own, from, whole, exported: [...exported] }
}

function statementsOf(file: string): string[] {
  const text = readFileSync(file, 'utf8').replaceAll(/^[ \t]*\/\*[\s\S]*?\*\/\n?/gm, '')
  const statements: string[] = []
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('//')) continue
    if (START.test(line)) statements.push(line)
    else statements.push(`${statements.pop() ?? ''}\n${line}`)
  }
  return statements
}

const resolveFrom = (file: string, path: string): string =>
  path.startsWith('.') ? resolve(dirname(file), path.replace(/\.[jt]s$/, '.d.ts')) : path
