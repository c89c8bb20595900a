import { open, rm, type FileHandle } from 'node:fs/promises'
import type { CommandModule, Context } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, print, printJson } from '../io.ts'
import { readLastFile } from '../files/tar-file.ts'
import { safe } from '../text/bytes.ts'
import { openAdmin, withAdminOption, type AdminFlags } from '../session/admin-options.ts'

interface Flags extends AdminFlags {
  readonly output?: string
}

/** More than servers send, 64 MiB before compression, and more time than they take. */
const LIMIT = { bytes: 128 << 20, ms: 600_000 }
/** Only the owner of the file may read it. */
const PRIVATE_MODE = 0o600

/** `zabra support-bundle`: what support asks for, in one file. */
export const supportBundle: CommandModule = (program, context) => {
  withAdminOption(program.command('support-bundle'))
    .description('collect what support asks for about a server, without data and secrets, in a file')
    .option('-o, --output <file>', 'write to this new file (default: zabra-ID-TIME.tar.gz)')
    .addHelpText('after', HELP)
    .action((flags: Flags) => collect(context, flags))
}

const HELP = `
Needs the role admin. Prints the manifest, which lists what is in the file and what is left out. Paths
of nodes, addresses and names of users may be in it: look at it before you pass it on.`

async function collect(context: Context, flags: Flags): Promise<void> {
  const { io, options } = context
  const admin = openAdmin(context, flags)
  // Before the server makes a bundle for a file that cannot be written.
  let target = flags.output === undefined ? undefined : await create(flags.output)
  try {
    const { headers, chunks } = await admin.request('GET', '/api/v1/support-bundle', { limit: LIMIT })
    // The name comes from the server: it is that of a file of this folder, or none.
    const [, named] = /filename="(zabra-[\w-]+\.tar\.gz)"/.exec(headers['content-disposition'] ?? '') ?? []
    target ??= await create(named ?? 'zabra-support.tar.gz')
    await write(target, chunks)
  } catch (error) {
    if (target !== undefined) await rm(target.path, { force: true })
    throw error
  } finally {
    await target?.file.close()
  }
  const { path } = target
  const manifest = await readLastFile(path, 'MANIFEST.txt').catch(() => undefined)
  if (manifest === undefined) {
    await rm(path, { force: true })
    throw new Failure(
      `${admin.url.host} has sent no complete bundle: the manifest at its end is missing. Run the command again.`,
      ExitCode.refused,
    )
  }
  if (options().json) return printJson(io, { file: path, manifest })
  print(io, safe(manifest.trimEnd()))
  note(io, `the bundle is in ${path}`)
}

interface Target {
  readonly path: string
  readonly file: FileHandle
}

async function create(path: string): Promise<Target> {
  try {
    return { path, file: await open(path, 'wx', PRIVATE_MODE) }
  } catch (error) {
    if (codeOf(error) === 'EEXIST')
      throw new UsageError(`${path} exists already. Name another file with --output.`)
    throw new UsageError(`${path} cannot be written (${codeOf(error)}). Name another file with --output.`)
  }
}

async function write({ path, file }: Target, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  const failed = (cause: unknown): never => {
    throw new Failure(
      `${path} cannot be written (${codeOf(cause)}). Make room, or name another file with --output.`,
      ExitCode.unexpected,
      { cause },
    )
  }
  for await (const chunk of chunks) await file.writeFile(chunk).catch(failed)
  await file.sync().catch(failed)
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? 'UNKNOWN'
