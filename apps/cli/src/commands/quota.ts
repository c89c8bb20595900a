import { ErrorCode } from '@zabra/protocol'
import type { Command } from 'commander'
import { integer } from '../arguments.ts'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { printJson } from '../io.ts'
import { changeQuota, conflictingQuota, readQuota, removeQuota, type Quota } from '../session/quotas.ts'
import { RequestError } from '../session/request-error.ts'
import type { Client } from '@zabra/client'
import { QUOTA_ROOT } from '../text/quota.ts'
import { printTable } from '../text/table.ts'

/** `zabra quota`: lists, sets and deletes limits of subtrees. */
export const quota: CommandModule = (program, context) => {
  const command = program.command('quota').description('limits of subtrees: list, set, del')
  list(command, context)
  set(command, context)
  del(command, context)
}

function list(command: Command, { io, options, session }: Context): void {
  command
    .command('list')
    .description('print quotas and their usage')
    .argument('[path]', 'the subtree (default: all with a quota)')
    .action(async (path?: string) => {
      const quotas = await session((zk) => (path === undefined ? readAll(zk, io.signal) : readOne(zk, path)))
      if (options().json) {
        for (const found of quotas) printJson(io, found)
        return
      }
      const rows = quotas.map(({ path, limits, used }) => [
        path,
        String(used.count),
        formatLimit(limits.count),
        formatLimit(limits.countHardLimit),
        String(used.bytes),
        formatLimit(limits.bytes),
        formatLimit(limits.byteHardLimit),
      ])
      if (rows.length > 0)
        printTable(io, ['path', 'nodes', 'warn at', 'refuse at', 'bytes', 'warn at', 'refuse at'], rows)
    })
}

function set(command: Command, { io, options, session }: Context): void {
  command
    .command('set')
    .description('set limits of a subtree, -1 for none; others stay unchanged')
    .argument('<path>', 'the subtree')
    .option('-n, --nodes <number>', 'log a warning on the server above this number of nodes', integer(-1))
    .option(
      '-b, --bytes <number>',
      'log a warning above this size of data, in bytes',
      integer(-1, Number.MAX_SAFE_INTEGER),
    )
    .option('-N, --hard-nodes <number>', 'refuse more nodes', integer(-1))
    .option('-B, --hard-bytes <number>', 'refuse more bytes of data', integer(-1, Number.MAX_SAFE_INTEGER))
    .action(
      async (
        path: string,
        flags: { nodes?: number; bytes?: number; hardNodes?: number; hardBytes?: number },
      ) => {
        if (Object.keys(flags).length === 0)
          throw new UsageError(
            'Expected a limit, got none. Give --nodes, --bytes, --hard-nodes or --hard-bytes.',
          )
        const limits = await session(async (zk) => {
          if ((await zk.exists(path)) === undefined) throw new RequestError(ErrorCode.NONODE, path)
          const other = await conflictingQuota(zk, path)
          if (other !== undefined)
            throw new Failure(
              `${other.path} ${other.where} ${path} has a quota, and quotas do not nest. Delete it first with zabra quota del ${other.path}.`,
              ExitCode.refused,
            )
          return changeQuota(zk, path, {
            ...(flags.nodes === undefined ? {} : { count: flags.nodes }),
            ...(flags.bytes === undefined ? {} : { bytes: flags.bytes }),
            ...(flags.hardNodes === undefined ? {} : { countHardLimit: flags.hardNodes }),
            ...(flags.hardBytes === undefined ? {} : { byteHardLimit: flags.hardBytes }),
          })
        })
        if (options().json) printJson(io, { path, limits })
      },
    )
}

function del(command: Command, { session }: Context): void {
  command
    .command('del')
    .description('delete the quota of a subtree')
    .argument('<path>', 'the subtree')
    .action(async (path: string) => {
      if (!(await session((zk) => removeQuota(zk, path)))) throw noQuota(path)
    })
}

async function readOne(zk: Client, path: string): Promise<Quota[]> {
  const found = await readQuota(zk, path)
  if (found === undefined) throw noQuota(path)
  return [found]
}

async function readAll(zk: Client, signal: AbortSignal): Promise<Quota[]> {
  const quotas: Quota[] = []
  for await (const node of zk.walk(QUOTA_ROOT, { signal, onUnreadable: () => {} })) {
    if (!node.endsWith('/zookeeper_limits')) continue
    const path = node.slice(QUOTA_ROOT.length, -'/zookeeper_limits'.length)
    const found = await readQuota(zk, path === '' ? '/' : path)
    if (found !== undefined) quotas.push(found)
  }
  return quotas
}

const noQuota = (path: string): Failure =>
  new Failure(`${path} has no quota. zabra quota list shows all quotas.`, ExitCode.noNode)

const formatLimit = (value: number): string => (value < 0 ? '-' : String(value))
