import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { setupStage, stage, type CommandRun } from '../testing/cli-fixture.ts'
import { HistorySearch } from './history-search.ts'

setupStage()

let homes = 0

/** Starts a shell whose standard input is a terminal, and waits for its first prompt. */
async function open(): Promise<CommandRun> {
  const environment = { XDG_STATE_HOME: join(stage.folder, `home-${homes++}`) }
  const shell = stage.start(['shell'], { terminal: true, environment })
  shell.stdin.isTTY = true
  await shell.stdout.until(/CONNECTED\) 0\] /)
  return shell
}

/** Types a text, and waits until the output ends with a match. */
async function type(shell: CommandRun, text: string, shows: RegExp): Promise<void> {
  shell.stdin.push(text)
  await shell.stdout.until(shows)
}

/** Ends the shell as Ctrl-D does. Resolves to its exit code, which is that of its last line. */
async function close(shell: CommandRun): Promise<number> {
  shell.stdin.push('\x04')
  return (await shell.ended).code
}

describe('Ctrl-R', () => {
  it('finds the newest line with the typed text, and Enter runs it', async () => {
    await stage.createNodes({ '/one': 'first', '/two': 'second' })
    const shell = await open()
    await type(shell, 'get /one\r', /first[^]*CONNECTED\) 1\] /)
    await type(shell, 'get /two\r', /second[^]*CONNECTED\) 2\] /)
    await type(shell, 'ls /\r', /zookeeper\][^]*CONNECTED\) 3\] /)
    await type(shell, '\x12', /history \(ls \/\): /)
    await type(shell, 'one', /history \(get \/one\): [^]*one/)
    await type(shell, '\r', /first[^]*first[^]*CONNECTED\) 4\] /)
    await type(shell, 'history\r', /3 - get \/one/)
    await close(shell)
  })

  it('goes on to older lines, and an arrow key leaves the line to edit', async () => {
    const shell = await open()
    await type(shell, 'create /three x\r', /Created \/three|CONNECTED\) 1\] /)
    await type(shell, 'create /four y\r', /CONNECTED\) 2\] /)
    await type(shell, '\x12crea', /history \(create \/four y\): /)
    await type(shell, '\x12', /history \(create \/three x\): /)
    await type(shell, '\x1b[C', /CONNECTED\) 2\] [^]*create \/three x/)
    await type(shell, '\x17yz\r', /CONNECTED\) 3\] /)
    expect(shell.stderr.text).toContain('Node already exists: /three')
    expect(await close(shell)).toBe(4)
  })

  it('runs nothing when no line has the text, and Ctrl-C ends the search', async () => {
    const shell = await open()
    await type(shell, '\x12delete /x', /history \(no match\): [^]*delete \/x/)
    await type(shell, '\r', /delete \/x[^]*CONNECTED\) 0\] /)
    await type(shell, '\x12x', /CONNECTED\) 0\] [^]*history \(no match\): [^]*x/)
    await type(shell, '\x03', /\^C\n[^]*CONNECTED\) 0\] /)
    await type(shell, 'version\r', /CONNECTED\) 1\] /)
    expect(shell.stderr.text).not.toContain('Command not found')
    await close(shell)
  })

  it('shows each line once', () => {
    const search = new HistorySearch(['get /b', 'ls /', 'get /b', 'get /a'])
    search.older('get')
    expect(search.match('get')).toBe('get /a')
    search.older('get')
    expect(search.match('get')).toBe('get /a')
    search.restart()
    expect(search.match('get')).toBe('get /b')
  })
})

it('clear erases a terminal, and prints nothing into a pipe', async () => {
  const shell = await open()
  await type(shell, 'clear\r', /\[H.\[2J.\[3J/)
  await close(shell)
  expect((await stage.run(['shell', '-c', 'clear'])).out).toBe('')
})
