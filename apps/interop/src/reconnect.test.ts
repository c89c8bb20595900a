import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { cliMt, describeWith, python } from './harness/requirements.ts'
import { Client } from './harness/client.ts'
import { apacheShell, serverUnderTest, Server, spawnOwned } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

/** An interactive program, driven line by line. */
class InteractiveProgram {
  readonly #child: ReturnType<typeof spawnOwned>
  readonly #outputWaiters: (() => void)[] = []
  output = ''
  hasEnded = false

  constructor(program: string, args: readonly string[]) {
    this.#child = spawnOwned(program, args)
    const append = (chunk: Buffer): void => {
      this.output += chunk.toString()
      for (const wake of this.#outputWaiters.splice(0)) wake()
    }
    this.#child.stdout.on('data', append)
    this.#child.stderr.on('data', append)
    this.#child.once('close', () => {
      this.hasEnded = true
      for (const wake of this.#outputWaiters.splice(0)) wake()
    })
  }

  writeLine(line: string): void {
    this.#child.stdin.write(`${line}\n`)
  }

  /** Waits until the output after offset `from` contains a text. Rejects after 40 s or when the program exits. */
  async waitForOutput(text: string | RegExp, from = 0): Promise<void> {
    let isTimedOut = false
    const timer = setTimeout(() => {
      isTimedOut = true
      for (const wake of this.#outputWaiters.splice(0)) wake()
    }, 40_000)
    const found = (): boolean =>
      typeof text === 'string' ? this.output.includes(text, from) : text.test(this.output.slice(from))
    while (!found()) {
      if (isTimedOut || this.hasEnded) {
        this.#child.kill('SIGKILL')
        throw new Error(`Waited for ${String(text)} and read:\n${this.output.slice(-4000)}`)
      }
      await new Promise<void>((done) => this.#outputWaiters.push(done))
    }
    clearTimeout(timer)
  }

  /** Stops the program during an action. */
  async pausedDuring(action: () => Promise<void>): Promise<void> {
    this.#child.kill('SIGSTOP')
    try {
      await action()
    } finally {
      this.#child.kill('SIGCONT')
    }
  }

  async end(line: string): Promise<void> {
    this.#child.stdin.end(line === '' ? undefined : `${line}\n`)
    if (!this.hasEnded) await new Promise<void>((done) => this.#child.once('close', () => done()))
  }
}

async function crash(server: Server): Promise<void> {
  await server.kill()
  await server.start()
}

describeWith(['apache', 'kazoo'], 'kazoo across a crash of the server', () => {
  it('keeps its session, its lock and its watches', async () => {
    // Longer than a server takes to start again on a busy machine: a session that expires meanwhile is not the subject.
    const config = { maxSessionTimeout: 100_000 }
    const { apache, zabra } = await onBoth(async (server) => {
      const program = new InteractiveProgram(python, [
        resolve(import.meta.dirname, '../python/reconnect.py'),
        server.address,
      ])
      await program.waitForOutput('ready\n')
      // Apache ZooKeeper may accept a connection while it starts and never answer it, which kazoo gives up after its session timeout.
      await program.pausedDuring(() => crash(server))
      program.writeLine('go')
      await program.waitForOutput('end\n')
      await program.end('')
      // kazoo also logs each attempt to connect, whose number varies.
      const lines = program.output.trimEnd().split('\n')
      return lines.filter((line) => !/^(Connect|Transition|Failed|Session)/.test(line)).join('\n')
    }, config)
    expect(zabra).toEqual(apache)
    expect(zabra).toContain('same session True')
  })
})

describeWith(
  serverUnderTest === 'zabra' ? ['cliMt'] : ['cliMt', 'apache'],
  'the C client across a crash of the server',
  () => {
    it('sets its watches again and receives the events of changes made meanwhile', async () => {
      await using server = await Server.start({ kind: serverUnderTest })
      const other = await Client.connect(server.port)
      for (const path of ['/data', '/children', '/kept']) await other.create(path)
      other.drop()
      const program = new InteractiveProgram(cliMt, [server.address])
      await program.waitForOutput('CONNECTED_STATE')
      for (const command of [
        'wexists /data',
        'wexists /absent',
        'ls /children',
        'wexists /kept',
        'create +e /e',
      ])
        program.writeLine(command)
      await program.waitForOutput('name = /e')
      const from = program.output.length
      // The shell may reconnect before these writes; it then receives live events instead of those of setWatches.
      await crash(server)
      const after = await Client.connect(server.port)
      await after.set('/data', 'changed')
      await after.create('/absent')
      await after.create('/children/one')
      await program.waitForOutput(/CHANGED_EVENT state = CONNECTED_STATE for path \/data/, from)
      await program.waitForOutput(/CREATED_EVENT state = CONNECTED_STATE for path \/absent/, from)
      await program.waitForOutput(/CHILD_EVENT state = CONNECTED_STATE for path \/children/, from)
      await after.set('/kept', 'now')
      await program.waitForOutput(/CHANGED_EVENT state = CONNECTED_STATE for path \/kept/, from)
      expect(await after.exists('/e')).toBeDefined()
      expect(program.output.slice(from)).not.toContain('EXPIRED')
      await program.end('quit')
      expect(await after.exists('/e')).toBeUndefined()
      await after.close()
    })
  },
)

describeWith(['apache'], "Apache ZooKeeper's shell across a crash of the server", () => {
  it('sets its watches again and keeps its session', async () => {
    await using server = await Server.start({ kind: serverUnderTest })
    const program = new InteractiveProgram('java', apacheShell(server))
    for (const command of [
      'create /n one',
      'create -e /n/e',
      'get -w /n',
      'addWatch /n',
      'whoami',
      'sync /n',
    ])
      program.writeLine(command)
    await program.waitForOutput('Sync is OK')
    const from = program.output.length
    await crash(server)
    const other = await Client.connect(server.port)
    await other.set('/n', 'two')
    await program.waitForOutput('WatchedEvent state:SyncConnected type:NodeDataChanged path:/n', from)
    // The persistent watch must be set again before the next event.
    await program.waitForOutput('WatchedEvent state:SyncConnected type:None path:null', from)
    program.writeLine('getAllChildrenNumber /n')
    await program.waitForOutput('1', program.output.length)
    await other.create('/n/new')
    await program.waitForOutput('WatchedEvent state:SyncConnected type:NodeCreated path:/n/new', from)
    expect(await other.exists('/n/e')).toBeDefined()
    await program.end('quit')
    expect(await other.exists('/n/e')).toBeUndefined()
    await other.close()
  })
})
