/** A login module of a section, with its options. Values may be passwords. */
export interface LoginModule {
  readonly name: string
  readonly line: number
  readonly options: readonly { readonly name: string; readonly value: string; readonly line: number }[]
}

/** The sections of a JAAS file by name, or its first syntax error. */
export type Jaas =
  | { readonly sections: ReadonlyMap<string, readonly LoginModule[]> }
  | { readonly line: number; readonly problem: string }

/**
 * Parses Java's login configuration: sections `Name { Module flag option="value" …; };`, with comments as in Java. Errors never
 * contain a value, since it may be a password.
 */
export function parseJaas(text: string): Jaas {
  try {
    return { sections: new Parser(tokens(text)).file() }
  } catch (error) {
    if (error instanceof SyntaxProblem) return { line: error.line, problem: error.message }
    throw error
  }
}

class SyntaxProblem extends Error {
  readonly line: number
  constructor(line: number, problem: string) {
    super(problem)
    this.line = line
  }
}

interface Token {
  readonly kind: 'word' | 'string' | '{' | '}' | ';' | '=' | 'end'
  readonly text: string
  readonly line: number
}

const blank = /(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/)*/y
const token = /(?:"((?:[^"\\\n]|\\[^\n])*)"|'((?:[^'\\\n]|\\[^\n])*)'|([{};=])|([^\s{};="']+))/y

function* tokens(text: string): Generator<Token> {
  let [at, line] = [0, 1]
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) at = pattern.lastIndex
    return match
  }
  for (;;) {
    line += take(blank)![0].split('\n').length - 1
    if (at === text.length) return yield { kind: 'end', text: '', line }
    const match = take(token)
    if (match === null) throw new SyntaxProblem(line, 'expected the closing quotation mark on the same line')
    const [, double, single, sign, word] = match
    if (sign !== undefined) yield { kind: sign as Token['kind'], text: sign, line }
    else if (word !== undefined) yield { kind: 'word', text: word, line }
    else yield { kind: 'string', text: unescape(double ?? single!), line }
  }
}

const escapes: Readonly<Record<string, string>> = {
  a: '\u0007',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
}

function unescape(raw: string): string {
  return raw.replace(/\\(?:([0-3]?[0-7]{1,2})|([^]))/g, (_, octal?: string, letter?: string) =>
    octal === undefined ? (escapes[letter!] ?? letter!) : String.fromCharCode(Number.parseInt(octal, 8)),
  )
}

const words = { word: 'a name', string: 'a text in quotation marks', end: 'the end of the file' } as const
const nameOf = (kind: Token['kind']): string =>
  kind === 'word' || kind === 'string' || kind === 'end' ? words[kind] : kind

class Parser {
  readonly #tokens: Iterator<Token>
  #token: Token

  constructor(tokens: Iterator<Token>) {
    this.#tokens = tokens
    this.#token = this.#next()
  }

  #next(): Token {
    return this.#tokens.next().value as Token
  }

  #take(expected: string, ...kinds: readonly Token['kind'][]): Token {
    const token = this.#token
    if (!kinds.includes(token.kind))
      throw new SyntaxProblem(token.line, `expected ${expected}, got ${nameOf(token.kind)}`)
    if (token.kind !== 'end') this.#token = this.#next()
    return token
  }

  file(): ReadonlyMap<string, readonly LoginModule[]> {
    const sections = new Map<string, readonly LoginModule[]>()
    while (this.#token.kind !== 'end') {
      const { text: name, line } = this.#take('the name of a section', 'word', 'string')
      if (sections.has(name)) throw new SyntaxProblem(line, `expected each section once, got ${name} again`)
      this.#take(`{ after the name of the section ${name}`, '{')
      const modules: LoginModule[] = []
      while (this.#token.kind !== '}') modules.push(this.#module(name))
      this.#take(`} at the end of the section ${name}`, '}')
      this.#take(`; after the } of the section ${name}`, ';')
      sections.set(name, modules)
    }
    return sections
  }

  #module(section: string): LoginModule {
    const { text: name, line } = this.#take(
      `the class of a login module, or } at the end of the section ${section}`,
      'word',
      'string',
    )
    const flag = this.#take('required, requisite, sufficient or optional after the class', 'word', 'string')
    if (!/^(required|requisite|sufficient|optional)$/i.test(flag.text))
      throw new SyntaxProblem(
        flag.line,
        'expected required, requisite, sufficient or optional after the class',
      )
    const options: { name: string; value: string; line: number }[] = []
    while (this.#token.kind !== ';') {
      const option = this.#take('an option name="value", or ; after the last one', 'word', 'string')
      this.#take('= after the name of an option', '=')
      const { text: value } = this.#take('"value" after =', 'word', 'string')
      options.push({ name: option.text, value, line: option.line })
    }
    this.#take('; after the last option', ';')
    return { name, line, options }
  }
}
