import type { SettingEntry, Finding } from './sources.ts'

/** Access to the files to which settings refer. */
export interface SettingsFiles {
  /** Returns the text of a file, or undefined when it does not exist. Throws when it cannot be read. */
  read(path: string): string | undefined
  /** Resolves a path against the working folder. */
  resolve(path: string): string
}

/** Reads a file that an entry names; a failure becomes a finding at that entry. */
export function readReferencedFile(
  files: SettingsFiles,
  path: string,
  link: Pick<SettingEntry, 'where' | 'key'>,
  findings: Finding[],
): string | undefined {
  const error = (text: string): void =>
    void findings.push({ severity: 'error', where: link.where, key: link.key, text })
  try {
    const text = files.read(path)
    if (text !== undefined) return text
    error(`expected a file, but there is none at ${path}.`)
  } catch (reason) {
    error(`cannot read ${path}: ${reason instanceof Error ? reason.message : String(reason)}.`)
  }
  return undefined
}
