import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { FileProblem } from '@zabra/server'
import type { ServerSettings } from '@zabra/server/settings'

const { R_OK, W_OK, X_OK } = constants

/** Returns why a server of this user could not use its data folders. Changes nothing. */
export function folderProblems(
  settings: Pick<ServerSettings, 'dataDir' | 'dataLogDir' | 'autoCreateDataDir'>,
  access: (path: string, mode: number) => void = accessSync,
): FileProblem[] {
  const { dataDir, dataLogDir, autoCreateDataDir } = settings
  const names = dataDir === dataLogDir ? (['dataDir'] as const) : (['dataDir', 'dataLogDir'] as const)
  return names.flatMap((name) => {
    const text = problemWith(settings[name], autoCreateDataDir, access)
    return text === undefined ? [] : [{ name, text }]
  })
}

function problemWith(
  folder: string,
  mayCreate: boolean,
  access: (path: string, mode: number) => void,
): string | undefined {
  const files = join(folder, 'version-2')
  if (!mayCreate && !existsSync(files))
    return `Expected the folder ${files}, got none. Create it, or set datadir.autocreate=true`
  let nearest = files
  while (!existsSync(nearest) && nearest !== dirname(nearest)) nearest = dirname(nearest)
  // Both hold files: the folder itself the lock. Above it nothing is read.
  const [used, mode] = existsSync(folder) ? [[folder, nearest], R_OK | W_OK | X_OK] : [[nearest], W_OK | X_OK]
  for (const path of used) {
    if (!statSync(path).isDirectory()) return `Expected a folder, got the file ${path}. Name another folder`
    try {
      access(path, mode)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      return `This user may not create files in ${path} (${code}). Run this as the user of the server, and let that user create files there`
    }
  }
  return undefined
}
