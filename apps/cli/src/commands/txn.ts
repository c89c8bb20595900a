import type { MultiError, WriteOp } from '@zabra/client'
import { readFileOrInput } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { Failure, toExit, UsageError } from '../exit-codes.ts'
import { printJson, readInput } from '../io.ts'
import { splitWords } from '../shell/split.ts'

/** `zabra txn`: executes several changes, all or none. */
export const txn: CommandModule = (program, { io, options, session }) => {
  program
    .command('txn')
    .description('execute changes in one transaction: all of them or none')
    .argument('[operations...]', 'one operation each, in quotes (default: lines of standard input)')
    .option('-f, --file <file>', 'read the operations from the lines of a file; - for standard input')
    .addHelpText('after', HELP)
    .action(async (operations: string[], { file }: { file?: string }) => {
      if (operations.length > 0 && file !== undefined)
        throw new UsageError('Expected operations or --file, got both. Give one of them.')
      const lines =
        operations.length > 0
          ? operations
          : new TextDecoder()
              .decode(file === undefined ? await readInput(io) : await readFileOrInput(io, file))
              .split('\n')
      const ops = lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))
      if (ops.length === 0)
        throw new UsageError('Expected at least one operation, got none. Run zabra txn --help.')
      const parsed = ops.map(parseOperation)
      await session(async (zk) => {
        try {
          await zk.multi(parsed)
        } catch (error) {
          const { index, cause } = error as Partial<MultiError>
          if (index === undefined || ops[index] === undefined) throw error
          const { line, exitCode } = toExit(cause)
          throw new Failure(
            `Operation ${index + 1} (${ops[index]}): ${line} Nothing was changed.`,
            exitCode,
            {
              cause: error,
            },
          )
        }
      })
      if (options().json) printJson(io, { operations: parsed.length })
    })
}

const HELP = `
Operations, one a line; quotes enclose words with blanks, and # begins a comment:
  check <path> [version]          the node exists, with this version
  create <path> [data]            a persistent node
  set <path> <data> [version]
  delete <path> [version]

  zabra txn 'check /app/leader 3' 'set /app/config "a b"' 'delete /app/old'`

/** Parses an operation. Throws a `UsageError` that quotes it. */
function parseOperation(line: string): WriteOp {
  const fail = (expected: string): never => {
    throw new UsageError(`Expected ${expected}, got ${JSON.stringify(line)}. Run zabra txn --help.`)
  }
  const [op, path, ...rest] = splitWords(line) ?? fail('a closing quote')
  if (path === undefined || !path.startsWith('/')) return fail('an operation and a path')
  const version = (text: string | undefined): { version?: number } => {
    if (text === undefined) return {}
    return /^\d{1,10}$/.test(text) ? { version: Number(text) } : fail('a version, a whole number,')
  }
  const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
  const limit = { check: 1, create: 1, set: 2, delete: 1 }[op ?? ''] ?? fail('check, create, set or delete')
  if (rest.length > limit) return fail(`at most ${limit + 2} words, or quotes around data with blanks,`)
  const [first, second] = rest
  if (op === 'set') {
    if (first === undefined) return fail('data to set')
    return { op: 'setData', path, data: encode(first), ...version(second) }
  }
  if (op === 'create') return { op, path, ...(first === undefined ? {} : { data: encode(first) }) }
  return { op: op === 'check' ? 'check' : 'delete', path, ...version(first) }
}
