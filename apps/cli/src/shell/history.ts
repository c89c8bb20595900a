import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Io } from '../io.ts'

/** Number of lines kept in the history file. */
export const HISTORY_LINES = 1000

/** Returns the path of the history file, in the system's folder for program state (`XDG_STATE_HOME`, `LOCALAPPDATA`). */
export function historyFile(environment: Io['environment'], platform: string = process.platform): string {
  const home = environment['HOME'] || homedir()
  const local = platform === 'win32' ? environment['LOCALAPPDATA'] : undefined
  const state = environment['XDG_STATE_HOME'] || local || join(home, '.local', 'state')
  return join(state, 'zabra', 'history')
}

/** Reads the lines of a history file, newest first; none when the file cannot be read. */
export function loadHistory(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .toReversed()
      .slice(0, HISTORY_LINES)
  } catch {
    // There is no file before the first shell of a user, and the shell works without one.
    return []
  }
}

/** Writes a history file from lines, newest first, readable by the user only. Leaves out `addauth` lines, which hold credentials. */
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
    // A read-only home folder, as in many containers, must not fail the shell.
  }
}
