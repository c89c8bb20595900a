import { ErrorCode } from '@zabra/protocol'
import { Option } from 'commander'
import { readGiven, type CommandModule } from '../context.ts'
import { ExitCode, Failure, isCode, judge, UsageError } from '../exit-codes.ts'
import { note, print, printJson, readInput, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { parseExport, type ExportedNode } from '../session/export-format.ts'
import { identitiesOf } from '../session/identities.ts'
import { planImport, type Plan } from '../session/import-plan.ts'
import { carryOut, ImportLeftover } from '../session/import-run.ts'
import { isReserved } from '../session/paths.ts'
import { safeLine, textOf } from '../text/bytes.ts'

interface Asked {
  readonly dryRun?: boolean
  readonly replace?: boolean
  readonly skip?: boolean
}

/** `zabra import`: what `zabra export` wrote, at the same place or another. */
export const importTree: CommandModule = (program, { io, options, session }) => {
  program
    .command('import')
    .description('create the nodes of an export; nothing is changed unless all of them can be')
    .argument('[file]', 'the export, - for standard input', '-')
    .argument('[path]', 'where its root goes; where it came from unless given')
    .option('-n, --dry-run', 'say what would be done, and do nothing')
    .addOption(
      new Option('--replace', 'give nodes that exist the data and access list of the export').conflicts(
        'skip',
      ),
    )
    .option('--skip', 'leave nodes that exist as they are')
    .action(async (file: string, path: string | undefined, asked: Asked) => {
      const nodes = await read(io, file, path)
      const existing = asked.replace ? 'replace' : asked.skip ? 'skip' : 'refuse'
      const { json, auth } = options()
      const plan = await session(
        async (zk) => {
          const us = await identitiesOf(zk, auth)
          const plan = await planImport(zk, nodes, existing, us)
          if (asked.dryRun) return plan
          refuseConflicts(plan)
          const bar = progress(io, 'Importing', 'nodes', plan.create.length + plan.replace.length)
          const takingBack = (nodes: number): void => {
            bar.stop()
            note(io, `deleting the ${nodes} nodes again that were created so far`)
          }
          try {
            await carryOut(zk, plan, { us, signal: io.signal, done: (nodes) => bar.at(nodes), takingBack })
          } catch (error) {
            throw explained(error, plan)
          } finally {
            bar.stop()
          }
          return plan
        },
        { cleansUp: true },
      )
      if (plan.reserved.length > 0)
        note(io, `left out ${plan.reserved.length} nodes in /zookeeper, which are the server's own`)
      if (json) printJson(io, summary(plan))
      else if (asked.dryRun) print(io, ...describe(plan))
      else
        note(
          io,
          `created ${plan.create.length + plan.parents.length}, replaced ${plan.replace.length}, left ${plan.keep.length} as they were${plan.close.length === 0 ? '' : `, closed ${plan.close.length} of an earlier import`}`,
        )
      if (asked.dryRun) refuseConflicts(plan)
    })
}

async function read(io: Io, file: string, path: string | undefined): Promise<ExportedNode[]> {
  const bytes = file === '-' ? await readInput(io) : await readGiven(file)
  const name = file === '-' ? 'standard input' : file
  const text = textOf(bytes)
  if (text === undefined)
    throw new UsageError(
      `${name}: Expected lines of JSON in UTF-8, got other bytes. Give a file that zabra export wrote.`,
    )
  const nodes = parseExport(text, name)
  if (nodes.length === 0)
    throw new UsageError(
      `${name}: Expected at least one node, got none. Give a file that zabra export wrote.`,
    )
  const root = path ?? rootOf(text) ?? '/'
  if (isReserved(root))
    throw new UsageError(`${root} is the server's own and never imported to. Name a subtree of yours.`)
  const at = root === '/' ? '' : root
  return nodes.map((node) => ({ ...node, path: node.path === '/' ? at || '/' : `${at}${node.path}` }))
}

/** Where an export came from, as its first line says. */
function rootOf(text: string): string | undefined {
  const first = JSON.parse(text.slice(0, text.indexOf('\n') >>> 0)) as { zabra?: unknown; root?: unknown }
  return first.zabra !== undefined && typeof first.root === 'string' ? first.root : undefined
}

/** What an import that did not come to its end has left, and what to do about it. */
function explained(error: unknown, { create }: Plan): unknown {
  if (error instanceof ImportLeftover) {
    const { line, exitCode } = judge(error.cause)
    const why = line === '' ? 'It was stopped.' : line
    return new Failure(
      `${why} Up to ${error.nodes} nodes that it has created stay. Run the same import again to complete it.`,
      exitCode,
      { cause: error },
    )
  }
  if (isCode(error, ErrorCode.UNIMPLEMENTED) && create.some(({ kind }) => kind !== undefined))
    return new Failure(
      'The server does not know containers or nodes with a time to live; nothing was changed. Set extendedTypesEnabled=true there, or take "container" and "ttl" out of the export.',
      ExitCode.refused,
      { cause: error },
    )
  return error
}

function refuseConflicts({ conflicts }: Plan): void {
  if (conflicts.length === 0) return
  const shown = conflicts.slice(0, 3).map(safeLine).join(', ')
  const more = conflicts.length > 3 ? ` and ${conflicts.length - 3} more` : ''
  throw new Failure(
    `${shown}${more} exist and differ from the export, or may not be read; nothing was changed. Give --replace to overwrite them or --skip to leave them.`,
    ExitCode.nodeExists,
  )
}

const summary = (plan: Plan) => ({
  create: [...plan.parents, ...plan.create.map(({ path }) => path)],
  replace: plan.replace.map(({ path }) => path),
  close: plan.close.map(({ path }) => path),
  keep: plan.keep,
  conflicts: plan.conflicts,
  reserved: plan.reserved,
})

const describe = (plan: Plan): string[] => [
  ...plan.parents.map((path) => `create ${safeLine(path)} (empty parent)`),
  ...plan.create.map(({ path }) => `create ${safeLine(path)}`),
  ...plan.replace.map(({ path }) => `replace ${safeLine(path)}`),
  ...plan.close.map(({ path }) => `close ${safeLine(path)} (left open by an import that was killed)`),
  ...plan.keep.map((path) => `keep ${safeLine(path)}`),
  ...plan.conflicts.map((path) => `conflict ${safeLine(path)}`),
]
