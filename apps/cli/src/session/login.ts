import { digestMd5 } from '@zabra/client'
import { readFileOrInput } from '../arguments.ts'
import { UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'
import { promptHidden } from '../text/prompt-hidden.ts'

/** A SASL login, whose password is read when it is first needed. */
export interface Login {
  readonly user: string
  /** Reads the password on the first call; later sessions of the program reuse it. */
  readonly mechanism: () => Promise<ReturnType<typeof digestMd5>>
  /** Reads the password as `mechanism` does. */
  readonly password: () => Promise<string>
}

interface LoginFlags {
  readonly saslUser?: string
  readonly saslPasswordFile?: string
}

/** Returns the login from flags and environment. No flag holds the password itself: other users could see it. */
export function resolveLogin({ saslUser, saslPasswordFile: file }: LoginFlags, io: Io): Login | undefined {
  const user = saslUser ?? io.environment['ZABRA_SASL_USER']
  if (!user) {
    if (file !== undefined)
      throw new UsageError(
        'Expected a user with --sasl-password-file, got none. Name one with --sasl-user or ZABRA_SASL_USER.',
      )
    return undefined
  }
  let read: Promise<string> | undefined
  const password = (): Promise<string> => (read ??= readPassword(user, file, io))
  return {
    user,
    mechanism: async () => digestMd5({ username: user, password: await password() }),
    password,
  }
}

/** Reads a password: the first line of a file, `ZABRA_SASL_PASSWORD` or a prompt without echo. */
export async function readPassword(user: string, file: string | undefined, io: Io): Promise<string> {
  if (file !== undefined) {
    const bytes = await readFileOrInput(io, file)
    const password = new TextDecoder().decode(bytes).split(/\r?\n/, 1)[0]!
    if (password !== '') return password
    const name = file === '-' ? 'standard input' : file
    throw new UsageError(`${name}: Expected a password in the first line, got an empty one.`)
  }
  const variable = io.environment['ZABRA_SASL_PASSWORD']
  if (variable) return variable
  if (io.stdin.isTTY === true && io.stderr.isTTY === true) return promptHidden(io, `Password of ${user}: `)
  throw new UsageError(
    `Expected a password for ${user}, got none, and there is no terminal to prompt on. Set ZABRA_SASL_PASSWORD, or name a file with --sasl-password-file.`,
  )
}
