import { UnreadableNodes, type CommandModule } from '../context.ts'
import { ExitCode, Failure } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import { parseSubtree, readSubtree, withSubtrees } from '../session/subtree.ts'
import { diffTrees, type Difference } from '../session/tree-diff.ts'
import { dataFields, preview, safeLine } from '../text/bytes.ts'
import { formatAcl } from '../text/acl.ts'
import { changePainter } from '../text/style.ts'

/** `zabra diff`: prints the differences of two subtrees. */
export const diff: CommandModule = (program, context) => {
  const { io, options } = context
  program
    .command('diff')
    .description('print the differences of two subtrees; exits with 11 when there are any')
    .argument('<from>', 'a path such as /app, or a server and a path such as zk2:2181/app')
    .argument('<to>', 'the other subtree')
    .addHelpText('after', HELP)
    .action(async (first: string, second: string) => {
      const [from, to] = [parseSubtree(first), parseSubtree(second)]
      const unreadable = new UnreadableNodes(io)
      const { json } = options()
      const paint = changePainter(io)
      const count = await withSubtrees(context, [from, to], async (left, right) => {
        let found = 0
        const differences = diffTrees(
          readSubtree(left, from.path, io.signal, unreadable.add),
          readSubtree(right, to.path, io.signal, unreadable.add),
        )
        for await (const difference of differences) {
          found++
          if (json) printJson(io, jsonOf(difference))
          else print(io, ...linesOf(difference).map(paint))
        }
        return found
      })
      unreadable.failIfAny()
      if (count > 0) throw new Failure('', ExitCode.differ)
    })
}

const HELP = `
Compares data and access lists. Ephemeral nodes are left out. Lines:
  - <path>   only in <from>      + <path>   only in <to>
  ~ <path>   in both, with the data or access list of each`

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
