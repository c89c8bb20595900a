/** Exit codes, equal to those of Apache ZooKeeper where it has one. */
export const ExitCode = {
  ok: 0,
  unexpected: 1,
  badConfiguration: 2,
  dataFolder: 3,
  httpPort: 4,
  diskFull: 15,
  corruptData: 17,
} as const

/** One line for the operator, and the code to exit with. */
export interface Exit {
  readonly line: string
  readonly exitCode: number
}

const accessErrors = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ENOENT', 'EISDIR', 'ELOCKED', 'EIO'])
/** Names of errors about files that settings name and about targets of backups, which a start uses. */
const configurationErrors = new Set([
  'CertificateError',
  'TlsOptionError',
  'SettingFileError',
  'BackupError',
  'BackupUsageError',
])
const diskFullErrors = new Set(['ENOSPC', 'EDQUOT'])

/** Maps an error to a line for the operator and an exit code. */
export function toExit(error: unknown): Exit {
  const causes = [...causeChain(error)]
  const text = causes[0] instanceof Error ? oneLine(causes[0].message) : oneLine(String(error))
  const codes = causes.map(codeOf)
  const isDiskFull = codes.some((code) => code !== undefined && diskFullErrors.has(code))
  if (!isDiskFull && causes.some(({ name }) => configurationErrors.has(name)))
    return { line: text, exitCode: ExitCode.badConfiguration }
  if (causes.some(({ name }) => name === 'HttpPortError'))
    return { line: withAdvice(text, 'Choose another port in that setting.'), exitCode: ExitCode.httpPort }
  const network = causes.find((cause) => cause.name === 'NetworkError' || codeOf(cause)?.startsWith('EADDR'))
  if (network) return { line: withAdvice(text, portAdvice(codeOf(network))), exitCode: ExitCode.unexpected }
  if (causes.some(({ name }) => /Corrupt|Recovery|Damage/.test(name)))
    return {
      line: withAdvice(text, 'Nothing was changed. Keep a copy of the data folder before you repair it.'),
      exitCode: ExitCode.corruptData,
    }
  if (isDiskFull)
    return {
      line: withAdvice(text, 'Free some space on the disk and start again.'),
      exitCode: ExitCode.diskFull,
    }
  const denied = codes.find((code) => code !== undefined && accessErrors.has(code))
  if (denied !== undefined)
    return { line: withAdvice(text, folderAdvice(denied)), exitCode: ExitCode.dataFolder }
  return { line: text, exitCode: ExitCode.unexpected }
}

function* causeChain(error: unknown): Generator<Error> {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) yield at
}

function codeOf(error: Error): string | undefined {
  const { code } = error as Error & { code?: unknown }
  return typeof code === 'string' ? code : undefined
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ').trim()
}

/** Appends advice, unless the text has a second sentence, which is advice already. */
function withAdvice(text: string, advice: string): string {
  return /[.;] [A-Z]\w* /.test(text) ? text : `${text.replace(/\.$/, '')}. ${advice}`
}

function portAdvice(code: string | undefined): string {
  if (code === 'EADDRINUSE')
    return 'Stop what uses the port, or choose another one with clientPort or --port.'
  if (code === 'EACCES') return 'Choose a port from 1024 up with clientPort or --port.'
  return 'Check clientPortAddress: it must be an address of this machine.'
}

function folderAdvice(code: string): string {
  if (code === 'ELOCKED')
    return 'Another server uses this folder: stop it, or choose another folder with dataDir or --data.'
  return 'Let this user write there, or choose another folder with dataDir or --data.'
}
