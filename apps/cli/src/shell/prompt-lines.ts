import { createInterface, type Interface } from 'node:readline/promises'
import { print } from '../io.ts'
import { complete } from './complete.ts'
import { HistorySearch } from './history-search.ts'
import { historyFile, HISTORY_LINES, loadHistory, saveHistory } from './history.ts'
import type { Shell } from './shell.ts'

/** A key as `node:readline` reports it. */
interface Key {
  readonly name?: string
  readonly ctrl?: boolean
}

/** Keys that end a search and leave the match on the line, to edit it. */
const ACCEPTING_KEYS = new Set(['escape', 'left', 'right', 'home', 'end', 'tab'])

/** Yields lines typed at the terminal, with history, its search and completion. `onRefresh` gets a function that draws the prompt again. */
export async function* promptLines(
  shell: Shell,
  onRefresh: (redraw: () => void) => void,
): AsyncGenerator<string> {
  const { io } = shell
  const file = historyFile(io.environment)
  print(
    io,
    'Tab completes commands and paths, Ctrl-R searches the history, help lists commands, Ctrl-D leaves.',
  )
  let history = loadHistory(file)
  let search: HistorySearch | undefined
  const reader = createInterface({
    input: io.stdin,
    output: io.stdout,
    terminal: true,
    history: [...history],
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
    completer: async (line: string): Promise<[string[], string]> =>
      search === undefined ? complete(shell, line) : [[], line],
  })
  const stop = (): void => reader.close()
  io.signal.addEventListener('abort', stop, { once: true })
  const prompt = (): void => {
    reader.setPrompt(search === undefined ? shell.prompt : search.prompt(reader.line))
    // Something may be typed already, and the cursor stays behind it.
    reader.prompt(true)
  }
  reader.on('SIGINT', () => {
    if (shell.interrupt()) return print(io, '^C')
    // As in other shells: Ctrl-C discards the line, and on an empty line leaves the shell.
    if (search === undefined && reader.line === '') return stop()
    print(io, '^C')
    search = undefined
    replaceLine(reader, '')
    return prompt()
  })
  reader.on('history', (lines: string[]) => {
    if (search !== undefined) keepMatch(lines, search)
    history = [...lines]
    saveHistory(file, lines)
  })
  // The line of a search is the text that was searched for; what runs is the match.
  const found: (string | undefined)[] = []
  reader.on('line', (line) => {
    found.push(search && (search.match(line) ?? ''))
    search = undefined
  })
  const onKey = (_: unknown, key: Key | undefined): void => {
    if (key?.ctrl === true && key.name === 'r') {
      if (search === undefined) search = new HistorySearch(history)
      else search.older(reader.line)
    } else if (search === undefined) return
    else if (ACCEPTING_KEYS.has(key?.name ?? '')) {
      const match = search.match(reader.line)
      search = undefined
      replaceLine(reader, match ?? '')
    } else if (key?.ctrl === true && key.name === 'g') {
      search = undefined
      replaceLine(reader, '')
      // Readline has put an earlier line in place of the text.
    } else if (key?.name === 'up' || key?.name === 'down') search = undefined
    else search.restart()
    prompt()
  }
  io.stdin.on('keypress', onKey)
  onRefresh(prompt)
  try {
    prompt()
    for await (const line of reader) {
      yield found.shift() ?? line
      if (!shell.hasQuit) prompt()
    }
  } finally {
    onRefresh(() => {})
    io.stdin.off('keypress', onKey)
    io.signal.removeEventListener('abort', stop)
    reader.close()
  }
}

/** Puts a text in place of the line that is being edited. */
function replaceLine(reader: Interface, text: string): void {
  reader.write(null, { ctrl: true, name: 'e' })
  reader.write(null, { ctrl: true, name: 'u' })
  if (text !== '') reader.write(text)
}

/** Puts the match into the history, newest first, in place of the text that was searched for. */
function keepMatch(lines: string[], search: HistorySearch): void {
  const match = search.match(lines.shift() ?? '')
  if (match === undefined) return
  const older = lines.indexOf(match)
  if (older >= 0) lines.splice(older, 1)
  lines.unshift(match)
}
