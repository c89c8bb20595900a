import { existsSync, readFileSync } from 'node:fs'
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { join, resolve } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { setupStage, stage } from '../testing/cli-fixture.ts'
import { hasTerminals, Terminal } from '../testing/terminal.ts'

const main = resolve(import.meta.dirname, '../../dist/main.js')
const absent = !existsSync(main)
  ? ' (skipped: pnpm build first)'
  : hasTerminals()
    ? ''
    : ' (skipped: python3 with pty is absent)'

const [CTRL_A, CTRL_C, CTRL_D, CTRL_R, CTRL_W] = ['\x01', '\x03', '\x04', '\x12', '\x17']
const [UP, LEFT, TAB] = ['\x1b[A', '\x1b[D', '\t']
const ready = /\(CONNECTED\) \d+\] .{0,6}$/

setupStage({ saslUsers: { bob: 'secret' } })
beforeAll(() => stage.createNodes({ '/apple': 'fruit', '/apple/core': 'seeds', '/applause': 'noise' }))

let homes = 0
const open = (argv = ['shell'], home = `home-${homes++}`): Terminal =>
  new Terminal([process.execPath, main, ...argv], {
    ZABRA_SERVER: stage.address,
    XDG_STATE_HOME: join(stage.folder, home),
  })

/** Starts a command that does not end: it connects to a server that never replies. */
async function connecting(terminal: Terminal): Promise<Server> {
  const silent = createServer((socket) => void socket.on('error', () => {}))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as { port: number }
  await terminal.shows(ready)
  const asked = once(silent, 'connection')
  await terminal.type(`connect 127.0.0.1:${port}\r`)
  await asked
  return silent
}

describe.skipIf(absent !== '')(`the shell at a terminal${absent}`, () => {
  it('edits lines', async () => {
    using terminal = open()
    await terminal.shows(ready)
    // Wrong in the middle, and at the beginning.
    await terminal.type('et /appe')
    await terminal.type(`${LEFT}l${CTRL_A}g\r`)
    await terminal.shows(/fruit\r\n.*CONNECTED/)
    await terminal.shows(/seeds\r\n.*CONNECTED/, `get /apple nonsense${CTRL_W}${CTRL_W}apple/core\r`)
    await terminal.type('quit\r')
    expect(await terminal.end()).toMatchObject({ code: 0 })
  })

  it('completes commands and paths', async () => {
    using terminal = open()
    await terminal.shows(ready)
    await terminal.shows(/getEphemerals/, `getEph${TAB}`)
    await terminal.type(CTRL_C)
    // What paths have in common, then all of them, then the only one.
    await terminal.shows(/get \/appl/, `get /a${TAB}`)
    await terminal.shows(/\/applause +\/apple/, TAB)
    await terminal.shows(/seeds/, `e/${TAB}\r`)
    await terminal.type(CTRL_D)
    expect(await terminal.end()).toMatchObject({ code: 0 })
  })

  it('finds earlier lines in the history, also in the next shell', async () => {
    {
      using terminal = open(['shell'], 'kept')
      await terminal.shows(ready)
      await terminal.shows(/seeds/, 'get /apple/core\r')
      await terminal.shows(/CONNECTED\) 2/, 'addauth digest ada:hidden\r')
      await terminal.shows(/fruit/, 'get /apple\r')
      await terminal.shows(/seeds/, `${UP}${UP}${UP}\r`)
      await terminal.type(CTRL_D)
      await terminal.end()
    }
    const kept = readFileSync(join(stage.folder, 'kept/zabra/history'), 'utf8')
    expect(kept).toContain('get /apple/core')
    expect(kept).not.toContain('hidden')
    using terminal = open(['shell'], 'kept')
    await terminal.shows(ready)
    await terminal.shows(/fruit/, `${UP}${UP}\r`)
  })

  it('searches the history on Ctrl-R', async () => {
    using terminal = open()
    await terminal.shows(ready)
    await terminal.shows(/seeds[\s\S]*CONNECTED\) 1/, 'get /apple/core\r')
    await terminal.shows(/fruit[\s\S]*CONNECTED\) 2/, 'get /apple\r')
    await terminal.shows(/history \(get \/apple\/core\): core/, `${CTRL_R}core`)
    await terminal.shows(/seeds/, '\r')
  })

  it('discards a line on Ctrl-C and exits on Ctrl-C at an empty line', async () => {
    using terminal = open()
    await terminal.shows(ready)
    await terminal.shows(/\^C[\s\S]*CONNECTED/, `delete /apple/core${CTRL_C}`)
    await terminal.shows(/seeds/, 'get /apple/core\r')
    await terminal.type(CTRL_C)
    expect((await terminal.end()).code).toBe(0)
    expect(await stage.zk.exists('/apple/core')).toBeDefined()
  })

  it('interrupts a command on Ctrl-C and continues', async () => {
    using terminal = open(['shell', '--timeout', '600000'])
    const silent = await connecting(terminal)
    await terminal.shows(/\^C\r\n.*\(CLOSED\) 1\] /, CTRL_C)
    await terminal.shows(/fruit/, `connect ${stage.address}\rget /apple\r`)
    silent.close()
  })

  it('keeps text typed during a command, with the cursor after it', async () => {
    using terminal = open(['shell', '--timeout', '600000'])
    const silent = await connecting(terminal)
    await terminal.shows(/get \/ap/, 'get /ap')
    await terminal.shows(/\(CLOSED\) 1\] get \/ap/, CTRL_C)
    await terminal
      .shows(/Not connected|Command not found/, 'ple\r')
      .then((shown) => expect(shown).toContain('Not connected'))
    silent.close()
  })

  it('keeps the line when the terminal is resized', async () => {
    using terminal = open()
    await terminal.shows(ready)
    await terminal.paste(`create /resized ${'x'.repeat(100)}`)
    await terminal.shows(/x{10}/)
    await terminal.resize(10, 30)
    await terminal.paste('y'.repeat(50))
    await terminal.resize(50, 200)
    await terminal.shows(/Created \/resized/, 'z\r')
    const { data } = await stage.zk.getData('/resized')
    expect(Buffer.from(data).toString()).toBe(`${'x'.repeat(100)}${'y'.repeat(50)}z`)
  })

  it('prints watch events while the user types, and keeps the typed text', async () => {
    using terminal = open()
    await terminal.shows(ready)
    await terminal.shows(/CONNECTED\) 1/, 'addWatch /applause\r')
    await terminal.shows(/get \/app/, 'get /app')
    await stage.zk.setData('/applause', new TextEncoder().encode('louder'))
    await terminal.shows(/type:NodeDataChanged path:\/applause[\s\S]*CONNECTED[\s\S]*get \/app/)
    await terminal.shows(/louder/, 'lause\r')
  })

  it('restores the terminal mode when a signal ends it', async () => {
    using terminal = open()
    await terminal.shows(ready)
    await terminal.signal('SIGTERM')
    expect((await terminal.end()).code).toBe(143)
  })

  it('prompts for a password without echo', async () => {
    using terminal = open(['whoami', '--sasl-user', 'bob'])
    await terminal.shows(/Password of bob: $/)
    expect(await terminal.echoes()).toBe(false)
    await terminal.paste('secret\r')
    const { code, shown } = await terminal.end()
    expect({ code, shown }).toEqual({ code: 0, shown: expect.stringContaining('sasl: bob') })
    expect(shown).not.toContain('secret')
  })

  it('runs commands after a password prompt', async () => {
    using terminal = open(['shell', '--sasl-user', 'bob'])
    await terminal.shows(/Password of bob: $/)
    await terminal.paste('secret\r')
    await terminal.shows(ready)
    await terminal.shows(/sasl: bob/, 'whoami\r')
  })

  it('cancels the password prompt on Ctrl-C', async () => {
    using terminal = open(['whoami', '--sasl-user', 'bob'])
    await terminal.shows(/Password of bob: $/)
    await terminal.type(CTRL_C)
    expect((await terminal.end()).code).toBe(130)
  })
})
