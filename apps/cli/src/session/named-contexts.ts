import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { UsageError } from '../exit-codes.ts'
import { makeFolder, replacePrivateFile } from '../files/private-files.ts'
import type { Io } from '../io.ts'

/** Options of the program that a context keeps as they are. */
export interface KeptFlags {
  readonly tls?: boolean
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly saslUser?: string
  readonly saslPasswordFile?: string
}

/** A named set of connection options. It holds no secret, only where to get one. */
export interface NamedContext extends KeptFlags {
  readonly server: string
  /** A line of the system shell that prints the password. */
  readonly saslPasswordCommand?: string
  /** A file with one identity, `scheme:credential`, a line. */
  readonly authFile?: string
  /** A line of the system shell that prints one identity a line. */
  readonly authCommand?: string
}

export interface ContextFile {
  /** The name of the context in use. */
  readonly current?: string
  readonly contexts: Readonly<Record<string, NamedContext>>
}

/** Returns the path of the file of contexts, in the user's configuration folder (`XDG_CONFIG_HOME`, `APPDATA`). */
export function contextFilePath(environment: Io['environment'], platform: string = process.platform): string {
  const roaming = platform === 'win32' ? environment['APPDATA'] : undefined
  const config =
    environment['XDG_CONFIG_HOME'] || roaming || join(environment['HOME'] || homedir(), '.config')
  return join(config, 'zabra', 'contexts.json')
}

/**
 * Reads the file of contexts; without a file there are none. Throws a `UsageError` when it is malformed or when other users may
 * change it: its commands run with the rights of this user.
 */
export function readContexts(environment: Io['environment']): ContextFile {
  const path = contextFilePath(environment)
  let text: string
  try {
    if (process.platform !== 'win32' && (statSync(path).mode & 0o022) !== 0)
      throw new UsageError(`Other users may write ${path}, whose commands zabra runs. Run chmod 600 on it.`)
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof UsageError) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return { contexts: {} }
    throw new UsageError(`${path} cannot be read (${code}). Check the path and its permissions.`, {
      cause: error,
    })
  }
  const file = parse(text)
  if (!isContextFile(file))
    throw new UsageError(
      `${path}: Expected {"contexts": {"name": {"server": "host:port"}}}. Correct it, or delete it and use zabra context add.`,
    )
  return file
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The caller reports what is expected.
    return undefined
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isContextFile = (file: unknown): file is ContextFile =>
  isObject(file) &&
  isObject(file['contexts']) &&
  ['undefined', 'string'].includes(typeof file['current']) &&
  Object.values(file['contexts']).every(
    (context) =>
      isObject(context) &&
      typeof context['server'] === 'string' &&
      Object.entries(context).every(
        ([key, value]) => typeof value === (key === 'tls' ? 'boolean' : 'string'),
      ),
  )

/** Replaces the file of contexts, readable by this user alone. */
export async function writeContexts(environment: Io['environment'], file: ContextFile): Promise<void> {
  const path = contextFilePath(environment)
  await makeFolder(dirname(path), 0o700)
  await replacePrivateFile(path, `${JSON.stringify(file, null, 2)}\n`)
}

/** Returns a context by its name. Throws a `UsageError` that lists the names when there is none. */
export function contextNamed(file: ContextFile, name: string): NamedContext {
  const context = Object.hasOwn(file.contexts, name) ? file.contexts[name] : undefined
  if (context !== undefined) return context
  const names = Object.keys(file.contexts)
  throw new UsageError(
    `There is no context ${JSON.stringify(name)}. ${names.length === 0 ? 'Add one with zabra context add.' : `There are: ${names.join(', ')}.`}`,
  )
}

/**
 * Returns the environment with the variables of a context. A context that is named by option or `ZABRA_CONTEXT` goes before the
 * variables. Without the option, a context counts only when no server is named, so that its credentials are not sent to another server.
 */
export function withContext(
  environment: Io['environment'],
  named: string | undefined,
  isServerNamed: boolean,
): Io['environment'] {
  const name = named ?? (isServerNamed ? undefined : environment['ZABRA_CONTEXT'])
  if (name)
    return { ...environment, ...variablesOf(contextNamed(readContexts(environment), name), environment) }
  if (isServerNamed || environment['ZABRA_SERVER']) return environment
  const file = readContexts(environment)
  if (file.current === undefined) return environment
  return { ...variablesOf(contextNamed(file, file.current), environment), ...environment }
}

function variablesOf(context: NamedContext, environment: Io['environment']): Record<string, string> {
  const auth = secret(context.authFile, context.authCommand, environment)
  const password = secret(context.saslPasswordFile, context.saslPasswordCommand, environment)?.split(
    /\r?\n/,
    1,
  )[0]
  const variables = {
    ZABRA_SERVER: context.server,
    ZABRA_TLS: context.tls ? '1' : undefined,
    ZABRA_CA: context.ca,
    ZABRA_CERT: context.cert,
    ZABRA_KEY: context.key,
    ZABRA_SASL_USER: context.saslUser,
    ZABRA_SASL_PASSWORD: password,
    ZABRA_AUTH: auth?.replaceAll('\r\n', '\n'),
  }
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
  )
}

/** Reads a secret from a file or the output of a command. No message repeats it. */
function secret(
  file: string | undefined,
  command: string | undefined,
  environment: Io['environment'],
): string | undefined {
  if (file !== undefined) {
    try {
      return readFileSync(file, 'utf8')
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new UsageError(
        `Cannot read ${file} of the context (${code}). Check the path and its permissions.`,
      )
    }
  }
  if (command === undefined) return undefined
  // It may prompt on the terminal for its own password.
  const ran = process.getBuiltinModule('node:child_process').spawnSync(command, {
    shell: true,
    stdio: ['inherit', 'pipe', 'inherit'],
    env: { ...environment },
  })
  if (ran.status === 0) return ran.stdout.toString()
  throw new UsageError(
    `The command of the context for credentials ended with ${ran.status ?? ran.signal ?? ran.error?.message}: ${command}`,
  )
}
