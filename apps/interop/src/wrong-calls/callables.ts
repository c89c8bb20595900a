/** A parameter of a function in an API report. */
export interface Parameter {
  readonly name: string
  readonly type: string
  readonly isOptional: boolean
}

/** A function, constructor or method in an API report, with the parameters of its last overload that has the most. */
export interface Callable {
  /** The declaration that has it: a class or an interface; undefined for an exported function. */
  readonly owner: string | undefined
  /** `constructor` for one. */
  readonly name: string
  readonly parameters: readonly Parameter[]
}

const OPEN = '{([<'
const CLOSE = '})]>'

/** Returns the index of the first of some characters outside of brackets, or the length of the text. */
function find(text: string, wanted: string, start = 0): number {
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const letter = text[i]!
    if (depth === 0 && wanted.includes(letter) && !(letter === '=' && text[i + 1] === '>')) return i
    if (OPEN.includes(letter)) depth++
    else if (CLOSE.includes(letter) && !(letter === '>' && text[i - 1] === '=')) depth--
  }
  return text.length
}

/** Splits a text at a character outside of brackets. */
export function split(text: string, at: string): string[] {
  const parts: string[] = []
  for (let start = 0; start <= text.length;) {
    const end = find(text, at, start)
    parts.push(text.slice(start, end).trim())
    start = end + 1
  }
  return parts.filter((part) => part !== '')
}

function parameter(text: string): Parameter {
  const colon = find(text, ':')
  const name = text.slice(0, colon).trim()
  const type = text.slice(colon + 1).trim()
  return { name: name.replace('?', ''), type, isOptional: name.endsWith('?') }
}

/** Returns the parameters of a signature that begins with its type parameters or its opening bracket. */
function parametersOf(signature: string): Parameter[] | undefined {
  const open = find(
    signature.replace(/^<.*?>(?=\()/s, (generics) => ' '.repeat(generics.length)),
    '(',
  )
  if (open === signature.length) return undefined
  return split(signature.slice(open + 1, find(signature, ')', open + 1)), ',').map(parameter)
}

/** All that a report declares, by name: the text of an alias, and the members of a class, an interface or an object type. */
export class Declarations {
  readonly callables: Callable[] = []
  readonly #aliases = new Map<string, string>()
  readonly #members = new Map<string, readonly Parameter[]>()
  readonly #bases = new Map<string, readonly string[]>()
  readonly exported = new Set<string>()

  constructor(report: string) {
    for (const [, name] of report.matchAll(/^\/\/ {3}(\w+)$/gm)) this.exported.add(name!)
    const text = report.replaceAll(/^\/\/.*$/gm, '')
    const starts = [...text.matchAll(/^(?:export |declare |type |interface )/gm)].map(({ index }) => index)
    starts.forEach((start, i) => this.#declare(text.slice(start, starts[i + 1]).trim()))
  }

  #declare(text: string): void {
    const [all, kind, name] =
      /^(?:export )?(?:declare )?(?:abstract )?(class|interface|type|function|const) ([\w$]+)/.exec(text) ??
      []
    if (all === undefined) return
    const rest = text.slice(all.length).replace(/;$/, '')
    if (kind === 'type') this.#aliases.set(name!, rest.slice(find(rest, '=') + 1).trim())
    else if (kind === 'function') this.#add(undefined, name!, rest)
    else if (kind === 'const') {
      if (/^: (?:<[^>]*>)?\(/.test(rest)) this.#add(undefined, name!, rest.slice(2))
      else if (rest.startsWith(': {')) this.#declareMembers(name!, rest.slice(rest.indexOf('{')))
    } else {
      const body = find(rest, '{')
      const [, bases = ''] = /(?:extends|implements) (.*)/s.exec(rest.slice(0, body)) ?? []
      this.#bases.set(name!, split(bases.replace(/ implements /, ', '), ','))
      this.#declareMembers(name!, rest.slice(body))
    }
  }

  #declareMembers(owner: string, braced: string): void {
    const members: Parameter[] = []
    for (const line of split(braced.slice(1, -1), ';')) {
      const member = line.replace(/^(?:static |readonly |private |override )+/, '')
      const [, name = '', mark, rest = ''] = /^(\[[^\]]+\]|'[^']+'|[\w$]+)(\?)?(.*)$/s.exec(member) ?? []
      if (name === '' || line.startsWith('private')) continue
      const isMethod = /^(?:<.*?>)?\(/s.test(rest)
      if (isMethod) this.#add(owner, name, rest)
      if (isMethod) members.push({ name, isOptional: mark !== undefined, type: '() => unknown' })
      else members.push({ name, isOptional: mark !== undefined, type: rest.slice(1).trim() })
    }
    this.#members.set(owner, members)
  }

  #add(owner: string | undefined, name: string, signature: string): void {
    const parameters = parametersOf(signature)
    if (parameters === undefined) return
    const at = this.callables.findIndex((known) => known.owner === owner && known.name === name)
    if (at === -1) this.callables.push({ owner, name, parameters })
    else if (this.callables[at]!.parameters.length <= parameters.length)
      this.callables[at] = { owner, name, parameters }
  }

  /** Returns the properties of an object type: its own, and those that it inherits or is combined of. */
  propertiesOf(type: string): readonly Parameter[] {
    const bare = type.replace(/^readonly /, '')
    if (bare.startsWith('{'))
      return split(bare.slice(1, -1), ';').map((line) => parameter(line.replace(/^readonly /, '')))
    if (bare.startsWith('(')) return this.propertiesOf(bare.slice(1, -1))
    const both = split(bare, '&')
    if (both.length > 1) return both.flatMap((part) => this.propertiesOf(part))
    const several = split(bare, '|')
    if (several.length > 1) return several.flatMap((part) => this.propertiesOf(part))
    const name = /^[\w$]+/.exec(bare)?.[0] ?? ''
    if (['Omit', 'Pick', 'Partial'].includes(name)) {
      const [inner = '', names = ''] = split(bare.slice(name.length + 1, -1), ',')
      const listed = (property: Parameter): boolean => names.includes(`'${property.name}'`)
      const all = this.propertiesOf(inner)
      return name === 'Partial' ? all : all.filter((property) => listed(property) === (name === 'Pick'))
    }
    const alias = this.#aliases.get(name)
    if (alias !== undefined) return this.propertiesOf(alias)
    return [
      ...(this.#members.get(name) ?? []),
      ...(this.#bases.get(name) ?? []).flatMap((base) => this.propertiesOf(base)),
    ]
  }

  /** Returns the members of a union, with aliases replaced. */
  alternatives(type: string): readonly string[] {
    const parts = split(
      type.replace(/^\((.*)\)$/s, (all, inner: string) => (find(inner, ')') === inner.length ? inner : all)),
      '|',
    )
    if (parts.length > 1) return parts.flatMap((part) => this.alternatives(part))
    const one = parts[0] ?? ''
    const alias = /^[\w$]+$/.test(one.replace(/<.*>$/s, ''))
      ? this.#aliases.get(one.replace(/<.*>$/s, ''))
      : undefined
    return alias === undefined ? [one] : this.alternatives(alias)
  }
}
