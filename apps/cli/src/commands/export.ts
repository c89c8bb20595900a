import { ErrorCode, type ACL } from '@zabra/protocol'
import { createWriteStream } from 'node:fs'
import { once } from 'node:events'
import { Unreadable, type CommandModule } from '../context.ts'
import { isCode, UsageError } from '../exit-codes.ts'
import { note, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { EXPORT_HEAD, formatNode } from '../session/export-format.ts'
import { isReserved, mapAhead, walk, type Visit } from '../session/walk.ts'
import type { ZooKeeper } from '../session/zookeeper.ts'

/** `zabra export`: a subtree as lines of JSON that `zabra import` brings back. */
export const exportTree: CommandModule = (program, { io, options, session }) => {
  program
    .command('export')
    .description('write a subtree as lines of JSON: paths, data, access lists')
    .argument('[path]', "the subtree; /zookeeper is the server's own and left out", '/')
    .option('-o, --output <file>', 'write to a new file instead of standard output')
    .option('-e, --ephemeral', 'with ephemeral nodes, which an import makes persistent')
    .action(async (path: string, asked: { output?: string; ephemeral?: boolean }) => {
      if (isReserved(path))
        throw new UsageError(`${path} is the server's own and never exported. Name a subtree of yours.`)
      const unreadable = new Unreadable(io)
      const counts = { exported: 0, ephemeral: 0 }
      const target = await open(io, asked.output)
      await session(async (zk) => {
        const whole = (await zk.getAllChildrenNumber(path)) + 1
        const bar = progress(
          io,
          'Exporting',
          'nodes',
          asked.output === undefined && io.stdout.isTTY ? 0 : whole,
        )
        try {
          await target.write(`${JSON.stringify({ ...EXPORT_HEAD, root: path })}\n`)
          const enters = (child: string): boolean => !isReserved(child)
          const nodes = walk(zk, path, { signal: io.signal, unreadable: unreadable.add, enters })
          const read = (node: Visit) => readNode(zk, node, unreadable)
          for await (const { node, content } of mapAhead(nodes, read)) {
            if (content === undefined) continue
            if ((node.stat?.ephemeralOwner ?? 0n) !== 0n && !asked.ephemeral) {
              counts.ephemeral++
              continue
            }
            const below = path === '/' ? node.path : node.path.slice(path.length) || '/'
            await target.write(`${formatNode({ path: below, ...content })}\n`)
            bar.at(++counts.exported)
          }
        } finally {
          bar.stop()
          await target.end()
        }
      })
      if (asked.output !== undefined && options().json) printJson(io, { file: asked.output, ...counts })
      else if (asked.output !== undefined) note(io, `exported ${counts.exported} nodes to ${asked.output}`)
      if (counts.ephemeral > 0)
        note(
          io,
          `left out ${counts.ephemeral} ephemeral nodes, which belong to sessions (--ephemeral takes them)`,
        )
      unreadable.conclude()
    })
}

async function readNode(zk: ZooKeeper, node: Visit, unreadable: Unreadable) {
  try {
    const [{ data }, { acl }] = await Promise.all([zk.getData(node.path), zk.getACL(node.path)])
    const content: { data: Uint8Array | null; acl: ACL[] } = { data, acl }
    return { node, content }
  } catch (error) {
    if (isCode(error, ErrorCode.NOAUTH)) unreadable.add(node.path)
    else if (!isCode(error, ErrorCode.NONODE)) throw error
    return { node, content: undefined }
  }
}

interface Target {
  write(line: string): Promise<void>
  end(): Promise<void>
}

/** Standard output, or a file that must not exist yet. Writes wait while the reader is slow. */
async function open(io: Io, file: string | undefined): Promise<Target> {
  const stream = file === undefined ? io.stdout : createWriteStream(file, { flags: 'wx', mode: 0o600 })
  if (file !== undefined) {
    try {
      await once(stream, 'open')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new UsageError(
        `Cannot create ${file} (${code}). Name a file that does not exist yet, in a folder that you may write to.`,
      )
    }
  }
  return {
    async write(line) {
      if (!stream.write(line)) await once(stream, 'drain', { signal: io.signal })
    },
    async end() {
      if (file !== undefined) await new Promise<void>((resolve) => stream.end(resolve))
    },
  }
}
