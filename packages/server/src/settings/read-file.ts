import type { SettingEntry, Finding } from './sources.ts'

/** The few files that settings refer to, as the program can reach them. */
export interface SettingsFiles {
  /** The text of a small file, or nothing when there is none. Throws when it is there and cannot be read. */
  read(path: string): string | undefined
  /** The path made absolute, from the folder that the program was started in. */
  resolve(path: string): string
}

/** Reads a file that an entry names; what is wrong with it becomes a finding at that entry. */
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
