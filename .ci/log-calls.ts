import { parseAst } from 'vitest/node'

/** A call that writes a line of the log. */
export interface LogCall {
  readonly at: string
  readonly level: 'error' | 'warn' | 'info' | 'debug'
  /** The messages that it may write, where they are constant. */
  readonly messages: readonly string[]
  /** The ids that its context names. */
  readonly ids: readonly string[]
  /** Whether a log of refusals writes it, which names an event for messages that are none. */
  readonly isRefusal: boolean
}

interface Line {
  readonly level: LogCall['level']
  readonly context: Node | undefined
  readonly message: Node | undefined
  readonly isRefusal: boolean
}

interface Source {
  readonly file: string
  readonly text: string
}

interface Node {
  readonly type: string
  readonly start: number
  readonly [property: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'
const childrenOf = (node: Node): Node[] => Object.values(node).flat().filter(isNode)
const nameOf = (node: Node | undefined): string => {
  if (node?.type === 'Identifier' || node?.type === 'PrivateIdentifier') return node['name'] as string
  return node?.type === 'MemberExpression' ? nameOf(node['property'] as Node) : ''
}
const LEVELS = new Set(['error', 'warn', 'info', 'debug'])

/** Returns all calls in the sources that write a line: of loggers, of limited logs, and of the functions that pass a message on to them. */
export function logCallsIn(sources: readonly Source[]): LogCall[] {
  const parsed = sources.map(({ file, text }) => ({
    file,
    text,
    program: parseAst(text, { lang: 'ts' }) as unknown as Node,
  }))
  const constants = new Map<string, Node>()
  for (const { program } of parsed)
    for (const statement of program['body'] as Node[])
      for (const { name, value } of declarationsOf(statement)) constants.set(name, value)
  return parsed.flatMap(({ file, text, program }) => new FileWalk(file, text, program, constants).calls())
}

/** Returns the variables that a statement declares with a value. */
function declarationsOf(statement: Node): { name: string; value: Node }[] {
  const declaration =
    statement.type === 'ExportNamedDeclaration' ? (statement['declaration'] as Node | null) : statement
  if (declaration?.type !== 'VariableDeclaration') return []
  return (declaration['declarations'] as Node[]).flatMap((one) =>
    isNode(one['init']) ? [{ name: nameOf(one['id'] as Node), value: one['init'] }] : [],
  )
}

class FileWalk {
  readonly #file: string
  readonly #text: string
  readonly #program: Node
  readonly #constants: ReadonlyMap<string, Node>
  readonly #calls: LogCall[] = []

  constructor(file: string, text: string, program: Node, constants: ReadonlyMap<string, Node>) {
    this.#file = file
    this.#text = text
    this.#program = program
    this.#constants = constants
  }

  calls(): readonly LogCall[] {
    this.#visit(this.#program, [])
    return this.#calls
  }

  #visit(node: Node, outer: readonly Node[]): void {
    const line = lineOf(node)
    if (line !== undefined) this.#record(node, outer, line)
    const inner = [...outer, node]
    for (const child of childrenOf(node)) this.#visit(child, inner)
  }

  #record(node: Node, outer: readonly Node[], line: Line): void {
    const { level, context, message, isRefusal } = line
    // The steps of a state machine are recorded where they are made.
    if (message?.type === 'MemberExpression' && nameOf(message['object'] as Node) === 'work') return
    const passed = message?.type === 'Identifier' ? parameterOf(outer, nameOf(message)) : undefined
    if (passed === undefined) {
      this.#calls.push({
        at: `${this.#file}:${this.#text.slice(0, node.start).split('\n').length}`,
        level,
        messages: this.#textsOf(message, outer),
        ids: this.#idsOf(context, outer),
        isRefusal,
      })
      return
    }
    for (const call of callsOf(this.#program, passed.method, [])) {
      const given = call.node['arguments'] as Node[]
      const object = given.find((argument) => this.#idsOf(argument, call.outer).length > 0)
      this.#record(call.node, call.outer, { ...line, context: object, message: given[passed.index] })
    }
  }

  /** Returns the constant texts that an expression may have. */
  #textsOf(node: Node | undefined, outer: readonly Node[]): string[] {
    if (node?.type === 'Literal' && typeof node['value'] === 'string') return [node['value']]
    if (node?.type === 'ConditionalExpression')
      return [node['consequent'], node['alternate']].flatMap((one) => this.#textsOf(one as Node, outer))
    return node?.type === 'Identifier' ? this.#textsOf(this.#valueOf(nameOf(node), outer), outer) : []
  }

  /** Returns the ids of events that an object names. */
  #idsOf(node: Node | undefined, outer: readonly Node[]): string[] {
    if (node?.type === 'Identifier') return this.#idsOf(this.#valueOf(nameOf(node), outer), outer)
    if (node?.type !== 'ObjectExpression') return []
    return (node['properties'] as Node[]).flatMap((property) => {
      if (nameOf(property['key'] as Node) !== 'id') return []
      return this.#textsOf(property['value'] as Node, outer)
    })
  }

  #valueOf(name: string, outer: readonly Node[]): Node | undefined {
    for (const scope of outer.toReversed()) {
      const body = scope.type === 'SwitchCase' ? scope['consequent'] : scope['body']
      if (!Array.isArray(body)) continue
      const found = (body as Node[]).flatMap(declarationsOf).find((one) => one.name === name)
      if (found !== undefined) return found.value
    }
    return this.#constants.get(name)
  }
}

/** Returns the line that a node writes; undefined for other nodes. */
function lineOf(node: Node): Line | undefined {
  if (node.type === 'ObjectExpression') {
    const properties = (node['properties'] as Node[]).filter(({ type }) => type === 'Property')
    const valueOf = (key: string): Node | undefined =>
      properties.find((property) => nameOf(property['key'] as Node) === key)?.['value'] as Node | undefined
    if (valueOf('do')?.['value'] !== 'warn') return undefined
    return { level: 'warn', context: valueOf('context'), message: valueOf('message'), isRefusal: false }
  }
  const callee = node['callee'] as Node | undefined
  if (node.type !== 'CallExpression' || callee?.type !== 'MemberExpression') return undefined
  const receiver = nameOf(callee['object'] as Node)
  const method = nameOf(callee)
  const given = node['arguments'] as Node[]
  if (/^logger$/i.test(receiver) && LEVELS.has(method))
    return { level: method as LogCall['level'], context: given[0], message: given[1], isRefusal: false }
  if (receiver === 'log' && method === 'log')
    return {
      level: given[0]!['value'] as LogCall['level'],
      context: given[2],
      message: given[3],
      isRefusal: false,
    }
  if (receiver === 'refusals' && method === 'note')
    return { level: 'info', context: given[1], message: given[2], isRefusal: true }
  return undefined
}

/** Returns the method with a parameter of this name, and its place among the parameters. */
function parameterOf(
  outer: readonly Node[],
  name: string,
): { readonly method: string; readonly index: number } | undefined {
  for (const [at, scope] of outer.toReversed().entries()) {
    if (
      Array.isArray(scope['body']) &&
      (scope['body'] as Node[]).flatMap(declarationsOf).some((one) => one.name === name)
    )
      return undefined
    const parameters = scope['params']
    if (!Array.isArray(parameters)) continue
    const index = (parameters as Node[]).findIndex((parameter) => nameOf(parameter) === name)
    if (index < 0) continue
    const owner = outer.toReversed()[at + 1]
    const method = nameOf((scope['id'] ?? owner?.['key'] ?? owner?.['id']) as Node)
    return method === '' ? undefined : { method, index }
  }
  return undefined
}

function callsOf(
  node: Node,
  method: string,
  outer: readonly Node[],
): { readonly node: Node; readonly outer: readonly Node[] }[] {
  const own =
    node.type === 'CallExpression' && nameOf(node['callee'] as Node) === method ? [{ node, outer }] : []
  const inner = [...outer, node]
  return [...own, ...childrenOf(node).flatMap((child) => callsOf(child, method, inner))]
}
