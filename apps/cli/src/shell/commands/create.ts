import { ErrorCode, MAX_TTL } from '@zabra/protocol'
import { ExitCode } from '../../exit-codes.ts'
import { createModeOf } from '../../session/create-mode.ts'
import { readAcl } from '../acl.ts'
import { numberOption, type ShellCommand } from '../command.ts'
import { keeperError, ShellFailure } from '../failures.ts'

/** Creates a node. */
export const create: ShellCommand = {
  usage: 'create [-s] [-e] [-c] [-t ttl] path [data] [acl]',
  flags: ['-s', '-e', '-c'],
  valueOptions: ['-t'],
  minArgs: 1,
  async run(shell, args) {
    const { flags, words } = args
    const [sequential, ephemeral, container] = ['-s', '-e', '-c'].map((flag) => flags.has(flag))
    const ttl = numberOption(args, '-t')
    if (container && (sequential || ephemeral))
      throw usageFailure('-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential.')
    if (ttl !== undefined && ephemeral) throw usageFailure('TTLs cannot be used with Ephemeral znodes')
    if (ttl !== undefined && container) throw usageFailure('TTLs cannot be used with Container znodes')
    if (ttl !== undefined && (ttl <= 0 || ttl > MAX_TTL))
      throw usageFailure(`ttl must be positive and cannot be larger than: ${MAX_TTL + 1}`)
    const path = shell.path(words[0])
    const acl = words[2] === undefined ? undefined : readAcl(shell, words[2])
    if (acl?.length === 0) {
      shell.err(keeperError(ErrorCode.INVALIDACL, undefined))
      throw usageFailure('Acl is not valid : null')
    }
    const data = words[1] ?? null
    const mode = createModeOf({
      sequential: sequential === true,
      ephemeral: ephemeral === true,
      container: container === true,
      ...(ttl === undefined ? {} : { ttl }),
    })
    // A protected create would add a prefix to the name that the user typed.
    const created = await shell.zk.create(path, { ...mode, data, acl, protected: false })
    shell.err(`Created ${created.path}`)
  },
}

const usageFailure = (text: string): ShellFailure => new ShellFailure(text, ExitCode.usage)
