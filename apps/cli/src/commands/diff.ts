import { raceAbort, UnreadableNodes, type CommandModule, type Context } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { withStoreOptions, type StoreFlags } from '../session/backup-store.ts'
import { openTree, parseTreeName, type ComparedTree } from '../session/compared-trees.ts'
import { diffTrees, type Difference } from '../session/tree-diff.ts'
import { dataFields, preview, safeLine } from '../text/bytes.ts'
import { formatAcl } from '../text/acl.ts'
import { changePainter } from '../text/style.ts'

/** `zabra diff`: prints the differences of two subtrees. */
export const diff: CommandModule = (program, context) => {
  const { io } = context
  withStoreOptions(program.command('diff'))
    .description('print the differences of two subtrees; exits with 11 when there are any')
    .argument(
      '<from>',
      'a path such as /app, or a server and a path such as zk2:2181/app; backup:/app, data:FOLDER:/app',
    )
    .argument('<to>', 'the other subtree')
    .addHelpText('after', HELP)
    .action(async (first: string, second: string, flags: StoreFlags) => {
      const [from, to] = [parseTreeName(first), parseTreeName(second)]
      const unreadable = new UnreadableNodes(io)
      const left = await openTree(context, from, flags, unreadable.add)
      let right: ComparedTree | undefined
      let count: number
      try {
        right = await openTree(context, to, flags, unreadable.add)
        count = await raceAbort(printDifferences(context, left, right), io.signal)
      } finally {
        await Promise.all([left.close(), right?.close()])
      }
      unreadable.failIfAny()
      if (count > 0) throw new Failure('', ExitCode.differ)
    })
}

/** Prints how two trees differ. Resolves to the number of differences. */
async function printDifferences(
  { io, options }: Context,
  from: ComparedTree,
  to: ComparedTree,
): Promise<number> {
  const { json } = options()
  const paint = changePainter(io)
  let found = 0
  for await (const difference of diffTrees(from.nodes(), to.nodes())) {
    io.signal.throwIfAborted()
    found++
    if (json) printJson(io, jsonOf(difference))
    else print(io, ...linesOf(difference).map(paint))
  }
  return found
}

const HELP = `
Compares data and access lists. Ephemeral nodes are left out. Lines:
  - <path>   only in <from>      + <path>   only in <to>
  ~ <path>   in both, with the data or access list of each
Subtrees are also read from files: backup:/app is that of the last backup in --target, backup@TIME:/app
and backup@ZXID:/app those of a moment (backup@2026-11-23T01:00:00Z:/app), data:FOLDER:/app that of a
data folder or a snapshot, as zabra export --from reads it.`

function linesOf({ kind, path, from, to, data, acl }: Difference): string[] {
  const name = safeLine(path)
  if (kind !== 'changed') return [`${kind === 'added' ? '+' : '-'} ${name}`]
  return [
    `~ ${name}`,
    ...(data ? [`    - ${preview(from!.data)}`, `    + ${preview(to!.data)}`] : []),
    ...(acl ? [`    - ${safeLine(formatAcl(from!.acl))}`, `    + ${safeLine(formatAcl(to!.acl))}`] : []),
  ]
}

const jsonOf = ({ kind, path, from, to }: Difference): object => ({
  kind,
  path,
  ...(from ? { from: { ...dataFields(from.data), acl: formatAcl(from.acl) } } : {}),
  ...(to ? { to: { ...dataFields(to.data), acl: formatAcl(to.acl) } } : {}),
})
