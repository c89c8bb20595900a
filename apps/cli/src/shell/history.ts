import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Io } from '../io.ts'

/** Lines that are kept from one shell to the next. */
export const HISTORY_LINES = 1000

/** The user's file of lines typed into the shell: below the folder where the system keeps the state of programs. */
export function historyFile(environment: Io['environment'], platform: string = process.platform): string {
  const home = environment['HOME'] || homedir()
  const local = platform === 'win32' ? environment['LOCALAPPDATA'] : undefined
  const state = environment['XDG_STATE_HOME'] || local || join(home, '.local', 'state')
  return join(state, 'zabra', 'history')
}

/** The lines of a file, the newest first; none when it cannot be read. */
export function loadHistory(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .toReversed()
      .slice(0, HISTORY_LINES)
  } catch {
    // The first shell of a user has none, and without it a shell works all the same.
    return []
  }
}

/** Keeps lines, the newest first, for nobody but the user. Lines with credentials are left out. */
export function saveHistory(file: string, lines: readonly string[]): void {
  const kept = lines.filter((line) => !/^\s*addauth\b/.test(line)).slice(0, HISTORY_LINES)
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(
      file,
      kept
        .toReversed()
        .map((line) => `${line}\n`)
        .join(''),
      { mode: 0o600 },
    )
    chmodSync(file, 0o600)
  } catch {
    // A home that cannot be written to, as in many containers, is no reason to fail.
  }
}
