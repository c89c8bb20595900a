import { digestMd5 } from '@zabra/client'
import { readFileArg } from '../arguments.ts'
import { UsageError } from '../exit-codes.ts'
import { readInput, type Io } from '../io.ts'
import { promptHidden } from '../text/prompt-hidden.ts'

/** Who logs in by SASL, and how the password is had once it is needed. */
export interface Login {
  readonly user: string
  /** Asked once; later sessions of the same program get the same answer. */
  readonly mechanism: () => Promise<ReturnType<typeof digestMd5>>
}

interface LoginFlags {
  readonly saslUser?: string
  readonly saslPasswordFile?: string
}

/** The login that flags and environment speak of. There is no flag for the password: others would see it. */
export function resolveLogin({ saslUser, saslPasswordFile: file }: LoginFlags, io: Io): Login | undefined {
  const user = saslUser ?? io.environment['ZABRA_SASL_USER']
  if (!user) {
    if (file !== undefined)
      throw new UsageError(
        'Expected a user beside --sasl-password-file, got none. Name one with --sasl-user or ZABRA_SASL_USER.',
      )
    return undefined
  }
  let password: Promise<string> | undefined
  return {
    user,
    mechanism: async () =>
      digestMd5({ username: user, password: await (password ??= readPassword(user, file, io)) }),
  }
}

async function readPassword(user: string, file: string | undefined, io: Io): Promise<string> {
  if (file !== undefined) {
    const bytes = file === '-' ? await readInput(io) : await readFileArg(file)
    const password = new TextDecoder().decode(bytes).split(/\r?\n/, 1)[0]!
    if (password !== '') return password
    const name = file === '-' ? 'standard input' : file
    throw new UsageError(`${name}: Expected a password in the first line, got an empty one.`)
  }
  const given = io.environment['ZABRA_SASL_PASSWORD']
  if (given) return given
  if (io.stdin.isTTY === true && io.stderr.isTTY === true) return promptHidden(io, `Password of ${user}: `)
  throw new UsageError(
    `Expected a password for ${user}, got none, and there is no terminal to ask at. Set ZABRA_SASL_PASSWORD, or name a file with --sasl-password-file.`,
  )
}
