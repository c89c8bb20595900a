import { UnreadableNodes } from '../../context.ts'
import { ExitCode } from '../../exit-codes.ts'
import { statLines } from '../../text/stat.ts'
import { readAcl } from '../acl.ts'
import { numberOption, type ShellCommand } from '../command.ts'
import { ShellFailure } from '../failures.ts'

/** Sets the access list of a node, or with `-R` of a subtree. */
export const setAcl: ShellCommand = {
  usage: 'setAcl [-s] [-v version] [-R] path acl',
  flags: ['-s', '-R'],
  valueOptions: ['-v'],
  minArgs: 2,
  async run(shell, args) {
    const { words, flags } = args
    const path = shell.path(words[0])
    const acl = readAcl(shell, words[1] ?? '')
    if (acl.length === 0) throw new ShellFailure('Acl is not valid : null', ExitCode.usage)
    const version = numberOption(args, '-v')
    const paths = [path]
    if (flags.has('-R')) {
      const { add } = new UnreadableNodes(shell.io)
      paths.pop()
      for await (const each of shell.zk.walk(path, { signal: shell.signal, onUnreadable: add }))
        paths.push(each)
    }
    for (const each of paths) {
      const stat = await shell.zk.setACL(each, acl, { version })
      if (flags.has('-s')) for (const line of statLines(stat)) shell.out(line)
    }
  },
}
