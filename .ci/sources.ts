import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Returns the paths of all TypeScript files of the packages and apps, generated ones left out. */
export function sourceFiles(root: string): string[] {
  return ['packages', 'apps'].flatMap((top) => walk(join(root, top))).filter((file) => file.endsWith('.ts'))
}

function walk(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    if (['node_modules', 'dist', '.turbo', 'gen'].includes(name)) return []
    const path = join(folder, name)
    return statSync(path).isDirectory() ? walk(path) : [path]
  })
}
