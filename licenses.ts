import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Returns the licenses of the third-party packages that `files` belong to, as the licenses demand of a bundle. */
export function licensesOf(files: readonly string[]): string {
  const texts = [...new Set(files.flatMap(thirdPartyPackage))].map(licenseOf).toSorted()
  return texts.join(`\n${'-'.repeat(80)}\n\n`)
}

/** Returns the folder of the third-party package that a file belongs to; empty for our own files. */
function thirdPartyPackage(file: string): string[] {
  if (!file.includes('node_modules/')) return []
  let folder = dirname(file)
  // Skip package.json files without a name inside a package; they only set the module type.
  while (!existsSync(join(folder, 'package.json')) || !readManifest(folder).name) {
    if (folder === dirname(folder)) throw new Error(`Expected a package around ${file}, found none`)
    folder = dirname(folder)
  }
  return [folder]
}

function licenseOf(folder: string): string {
  const { name, version, license } = readManifest(folder)
  const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file))
  if (files.length === 0)
    throw new Error(`Expected a file with the license of ${name}, got none in ${folder}`)
  const texts = files.map((file) => readFileSync(join(folder, file), 'utf8').trim())
  return [`${name} ${version} (${license})`, ...texts].join('\n\n') + '\n'
}

const readManifest = (folder: string): { name?: string; version?: string; license?: string } =>
  JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object
