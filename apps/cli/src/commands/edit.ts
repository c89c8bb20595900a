import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ErrorCode } from '@zabra/protocol'
import { runChild } from '../child.ts'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, hasCode, UsageError } from '../exit-codes.ts'
import { note, type Io } from '../io.ts'

const NEWLINE = 0x0a

/** `zabra edit`: edits the data of a node in an editor. */
export const edit: CommandModule = (program, { io, session }) => {
  program
    .command('edit')
    .description('edit the data of a node in $VISUAL or $EDITOR')
    .argument('<path>', 'the node')
    .action(async (path: string) => {
      const { VISUAL, EDITOR } = io.environment
      if (io.stdin.isTTY !== true && !VISUAL && !EDITOR)
        throw new UsageError(
          'Expected a terminal for the editor, got other input. Name an editor without one in $VISUAL or $EDITOR, or use zabra set --file.',
        )
      const { data, stat } = await session((zk) => zk.getData(path))
      // Its owner alone can read the folder.
      const folder = await mkdtemp(join(tmpdir(), 'zabra-edit-'))
      const file = join(folder, path.slice(path.lastIndexOf('/') + 1) || 'root')
      let isSaved = false
      try {
        await writeFile(file, data, { mode: 0o600 })
        const after = await runEditor(io, file, data)
        if (Buffer.compare(after, data) === 0) {
          isSaved = true
          return note(io, `${path} was not changed`)
        }
        // The editor may be open for longer than a session lives, so that the change has a session of its own.
        await session((zk) => zk.setData(path, after, { version: stat.version }))
        isSaved = true
      } catch (error) {
        if (!hasCode(error, ErrorCode.BADVERSION)) throw error
        throw new Failure(
          `Another client has changed ${path} since the editor was opened. Your text is in ${file}; compare it with zabra get ${path}.`,
          ExitCode.badVersion,
          { cause: error },
        )
      } finally {
        if (isSaved) await rm(folder, { recursive: true })
        else note(io, `the edited text is in ${file}`)
      }
      return undefined
    })
}

/** Opens the editor on the file and resolves to its contents afterwards. */
async function runEditor(io: Io, file: string, before: Uint8Array): Promise<Uint8Array> {
  const { environment } = io
  // The variables hold a command line, such as `code --wait`.
  const editor =
    environment['VISUAL'] || environment['EDITOR'] || (process.platform === 'win32' ? 'notepad' : 'vi')
  const code = await runChild(io, [`${editor} ${quote(file)}`], { shell: true })
  if (code !== 0)
    throw new Failure(`The editor ${editor} ended with ${code}, so nothing was changed.`, ExitCode.unexpected)
  const after = new Uint8Array(await readFile(file))
  // Editors end a file with a newline; the data keeps the end that it had.
  const isAppended = after.at(-1) === NEWLINE && before.at(-1) !== NEWLINE
  return isAppended ? after.subarray(0, -1) : after
}

const quote = (file: string): string =>
  process.platform === 'win32' ? `"${file}"` : `'${file.replaceAll("'", String.raw`'\''`)}'`
