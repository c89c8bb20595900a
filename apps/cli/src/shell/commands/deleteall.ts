import { ErrorCode } from '@zabra/protocol'
import { ExitCode } from '../../exit-codes.ts'
import { RequestError } from '../../session/request-error.ts'
import { isReserved } from '../../session/paths.ts'
import { CommandSyntaxError, numberOption, type ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'

/** Deletes a subtree. */
export const deleteall: ShellCommand = {
  usage: 'deleteall path [-b batch size]',
  valueOptions: ['-b'],
  minArgs: 1,
  async run(shell, args) {
    const batch = numberOption(args, '-b') ?? 1000
    if (batch < 1) throw new CommandSyntaxError(`Expected a batch of at least 1 node, got ${batch}`)
    const path = shell.path(args.words[0])
    if (path === '/' || isReserved(path))
      throw new ShellFailure(`${path} is needed by the server and stays.`, ExitCode.usage)
    await shell.zk.delete(path, {
      recursive: true,
      signal: shell.signal,
      batchSize: batch,
      onUnreadable: (hidden) => {
        throw new RequestError(ErrorCode.NOAUTH, hidden)
      },
    })
  },
}
