import { UnreadableNodes, type CommandModule } from '../context.ts'
import { UsageError } from '../exit-codes.ts'
import { print, printJson } from '../io.ts'
import type { Client } from '@zabra/client'
import { counted, progress } from '../progress.ts'
import { isReserved } from '../session/paths.ts'
import { parseSubtree, readSubtree, withSubtrees } from '../session/subtree.ts'
import { diffTrees, type Difference } from '../session/tree-diff.ts'
import { safeLine } from '../text/bytes.ts'
import { changePainter } from '../text/style.ts'

interface Flags {
  readonly delete?: boolean
  readonly dryRun?: boolean
}

/** `zabra mirror`: makes one subtree equal to another. */
export const mirror: CommandModule = (program, context) => {
  const { io, options } = context
  program
    .command('mirror')
    .description('make a subtree equal to another: create and change what differs')
    .argument('<from>', 'a path such as /app, or a server and a path such as zk2:2181/app')
    .argument('<to>', 'the subtree to change')
    .option('--delete', 'delete nodes of <to> that <from> lacks')
    .option('-n, --dry-run', 'print the changes without making them')
    .addHelpText('after', HELP)
    .action(async (first: string, second: string, flags: Flags) => {
      const [from, to] = [parseSubtree(first), parseSubtree(second)]
      const reserved = [from.path, to.path].find(isReserved)
      if (reserved !== undefined)
        throw new UsageError(
          `${reserved} belongs to the server and cannot be mirrored. Name another subtree.`,
        )
      if (from.server === to.server && (isBelow(from.path, to.path) || isBelow(to.path, from.path)))
        throw new UsageError(`Expected two separate subtrees, got ${first} and ${second}. Name others.`)
      const unreadable = new UnreadableNodes(io)
      const { json } = options()
      const paint = changePainter(io)
      const counts = { removed: 0, added: 0, changed: 0 }
      await withSubtrees(context, [from, to], async (source, target) => {
        // A source that does not exist leaves no target behind.
        const nodes = (await source.getAllChildrenNumber(from.path)) + 1
        // Missing parents of the target, the target included.
        if (!flags.dryRun && to.path !== '/')
          await target.createMissing([{ path: to.path, mode: 'container' }])
        const extra: string[] = []
        // Where the changes are printed they show the progress.
        const isShown = !json && io.stdout.isTTY === true
        const bar = progress(io, 'Mirroring', 'nodes', isShown ? 0 : nodes)
        const differences = diffTrees(
          readTarget(target, to.path, io.signal, unreadable.add),
          counted(readSubtree(source, from.path, io.signal, unreadable.add), bar),
        )
        try {
          for await (const difference of differences) {
            const path = pathBelow(to.path, difference.path)
            if (difference.kind === 'removed') {
              extra.push(path)
              continue
            }
            counts[difference.kind]++
            if (!json) print(io, paint(`${difference.kind === 'added' ? '+' : '~'} ${safeLine(path)}`))
            if (!flags.dryRun) await apply(target, path, difference)
          }
        } finally {
          bar.stop()
        }
        unreadable.failIfAny()
        if (!flags.delete) return
        // Children follow their parents in `extra`.
        for (const path of extra.toReversed()) {
          counts.removed++
          if (!json) print(io, paint(`- ${safeLine(path)}`))
          if (!flags.dryRun)
            await target.delete(path, { recursive: true, missingOk: true, signal: io.signal })
        }
      })
      if (json) printJson(io, counts)
    })
}

const HELP = `
Copies data and access lists node by node, parents first; writers of <from> may go on, and the
next run copies what they change meanwhile. Ephemeral nodes are left out, and sequence counters,
containers and times to live are not kept: zabra export and zabra import do that.`

const isBelow = (path: string, parent: string): boolean =>
  path === parent || parent === '/' || path.startsWith(`${parent}/`)

const pathBelow = (root: string, path: string): string =>
  root === '/' ? path : path === '/' ? root : root + path

/** Reads the target, which does not exist before the first dry run. */
async function* readTarget(
  ...[zk, root, signal, unreadable]: Parameters<typeof readSubtree>
): ReturnType<typeof readSubtree> {
  if ((await zk.exists(root)) !== undefined) yield* readSubtree(zk, root, signal, unreadable)
}

async function apply(target: Client, path: string, { kind, to, data, acl }: Difference): Promise<void> {
  const node = to!
  if (kind === 'added') return void (await target.create(path, { data: node.data, acl: node.acl }))
  if (data) await target.setData(path, node.data)
  if (acl) await target.setACL(path, node.acl)
}
