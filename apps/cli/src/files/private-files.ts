import { constants } from 'node:fs'
import { access, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { UsageError } from '../exit-codes.ts'

/** Only the owner of the file may read it. */
const PRIVATE_MODE = 0o600

/**
 * Creates a file that only its owner can read, with its folder. Rejects with a `UsageError` when the file exists: a key that is
 * overwritten is lost.
 */
export async function createPrivateFile(path: string, text: string, advice: string): Promise<void> {
  await makeFolder(dirname(path), 0o700)
  try {
    await writeNew(path, text)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new UsageError(`${path} exists already. ${advice}`)
    throw unusable(path, 'written', error)
  }
}

/** Makes a folder, with those above it, unless it exists. Rejects with a `UsageError` where it cannot be made. */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  try {
    await mkdir(path, mode)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return
    // Not with `recursive`: Node retries for ever where the system forbids folders, as below /proc.
    if (code !== 'ENOENT' || dirname(path) === path || (await exists(dirname(path))))
      throw new UsageError(`Cannot make the folder ${path} (${code}). Check the path and its permissions.`)
    await makeFolder(dirname(path), mode)
    await makeFolder(path, mode)
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

/** Replaces a file that only its owner can read, in one step: a program that reads it meanwhile sees the old or the new contents. */
export async function replacePrivateFile(path: string, text: string): Promise<void> {
  // Loaded here: most commands write no file.
  const { randomUUID } = await import('node:crypto')
  // A name of its own: any other file beside it may be that of a user.
  const temporary = `${path}.${randomUUID()}.tmp`
  try {
    await writeNew(temporary, text)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw unusable(path, 'written', error)
  }
}

/** Resolves to the text of a file. Rejects with a `UsageError` that gives this advice when there is none. */
export async function readTextFile(path: string, advice: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new UsageError(`There is no file ${path}. ${advice}`)
    throw unusable(path, 'read', error)
  }
}

async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, PRIVATE_MODE)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

function unusable(path: string, what: 'read' | 'written', error: unknown): UsageError {
  const { code = 'UNKNOWN' } = error as NodeJS.ErrnoException
  return new UsageError(`${path} cannot be ${what} (${code}). Check the path and its permissions.`)
}
