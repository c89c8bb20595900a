import { DiskError, type Cancel, type Disk, type FileMode, type Platform } from '@zabra/runtime'
import { rowOf, settingNames, type ServerSettings } from './settings/index.ts'

/** Milliseconds between two looks at the files: as often as certificates are read again. */
const INTERVAL_MS = 10_000

/** A file with secrets that other users than its owner may use. */
export interface OpenSecretFile {
  /** The key of the setting that names the file, or those of the secrets in the configuration file. */
  readonly key: string
  /** Whether it is the configuration file. */
  readonly isConfiguration: boolean
  readonly path: string
  /** Its mode, and who may do what. */
  readonly evidence: string
  /** The command that mends it. */
  readonly command: string
}

/**
 * Looks at the files with keys, passwords and tokens that the settings name, and at the configuration file where it has some. Resolves to
 * those that other users may read or write, each once; to none where files have no modes. Files that cannot be looked at are left to their readers.
 */
export async function openSecretFiles(
  settings: ServerSettings,
  disk: Disk,
): Promise<readonly OpenSecretFile[]> {
  const found = new Map<string, OpenSecretFile>()
  for (const { key, path, isConfiguration } of secretFilesOf(settings)) {
    const mode = found.has(path) ? undefined : await modeOf(path, disk)
    const evidence = mode && evidenceOf(mode)
    if (evidence !== undefined)
      found.set(path, { key, path, isConfiguration, evidence, command: commandFor(path, mode!) })
  }
  return [...found.values()]
}

function secretFilesOf(settings: ServerSettings): Pick<OpenSecretFile, 'key' | 'path' | 'isConfiguration'>[] {
  const { secretsInFile } = settings
  const files = settingNames.flatMap((name) => {
    const { key, isSecretFile } = rowOf(name)
    const path = settings[name]
    return isSecretFile === true && typeof path === 'string' ? [{ key, path, isConfiguration: false }] : []
  })
  if (secretsInFile !== undefined)
    files.push({ key: secretsInFile.keys.join(', '), path: secretsInFile.path, isConfiguration: true })
  return files
}

async function modeOf(path: string, disk: Disk): Promise<FileMode | undefined> {
  try {
    return await disk.modeOf?.(path)
  } catch (error) {
    if (error instanceof DiskError) return undefined
    throw error
  }
}

/** Returns what others may do with a file; undefined when that is nothing, or what they need. */
function evidenceOf({ bits, isRoots }: FileMode): string | undefined {
  const rights = [
    // A server of another user reads a file of root through its group only.
    ['its group', (isRoots ? bits & ~GROUP_READS : bits) >> 3],
    ['all users', bits],
  ] as const
  const others = rights
    .filter(([, right]) => (right & 6) !== 0)
    .map(([name, right]) => `${name} may ${RIGHTS[right & 6]} it`)
  return others.length === 0
    ? undefined
    : `its mode is ${bits.toString(8).padStart(3, '0')}, ${others.join(', ')}`
}

const commandFor = (path: string, { bits, isRoots }: FileMode): string =>
  `chmod ${isRoots && (bits & GROUP_READS) !== 0 ? '640' : '600'} ${path}`

const GROUP_READS = 0o040
const RIGHTS: Readonly<Record<number, string>> = { 2: 'write', 4: 'read', 6: 'read and write' }

/** Warns of files with secrets that other users may use, of each once until its mode changes. */
export class SecretFiles {
  readonly #settings: ServerSettings
  readonly #platform: Pick<Platform, 'disk' | 'clock' | 'logger'>
  /** What was said of each file. */
  #said = new Map<string, string>()
  #isStopped = false
  #cancel: Cancel = () => {}

  constructor(settings: ServerSettings, platform: Pick<Platform, 'disk' | 'clock' | 'logger'>) {
    this.#settings = settings
    this.#platform = platform
  }

  /** Looks at the files now, and every 10 s until `stop`: they may be written again at any time. */
  async start(): Promise<void> {
    const { disk, clock } = this.#platform
    if (disk.modeOf === undefined || secretFilesOf(this.#settings).length === 0) return
    await this.#check()
    if (this.#isStopped) return
    this.#cancel = clock.after(INTERVAL_MS, 'modes of files with secrets', () => void this.start())
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel()
  }

  async #check(): Promise<void> {
    const { disk, logger } = this.#platform
    const found = await openSecretFiles(this.#settings, disk)
    for (const { key, path, isConfiguration, evidence, command } of found)
      if (this.#said.get(path) !== evidence) {
        const role = isConfiguration ? `in which ${key} is set` : `which ${key} names`
        logger.warn(
          { id: 'file.open-secret' },
          `${path}, ${role}, holds secrets: ${evidence}. Run ${command}`,
        )
      }
    this.#said = new Map(found.map(({ path, evidence }) => [path, evidence]))
  }
}
