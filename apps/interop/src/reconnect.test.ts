import { resolve } from 'node:path'
import { expect, it } from 'vitest'
import { cliMt, describeWith, python } from './harness/requirements.ts'
import { Client } from './harness/client.ts'
import { apacheClassPath, ours, Server, spawnOwned } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

/** A program that is talked to line by line. */
class InteractiveProgram {
  readonly #child: ReturnType<typeof spawnOwned>
  readonly #outputWaiters: (() => void)[] = []
  output = ''
  hasEnded = false

  constructor(program: string, args: readonly string[]) {
    this.#child = spawnOwned(program, args)
    const hear = (chunk: Buffer): void => {
      this.output += chunk.toString()
      for (const wake of this.#outputWaiters.splice(0)) wake()
    }
    this.#child.stdout.on('data', hear)
    this.#child.stderr.on('data', hear)
    this.#child.once('close', () => {
      this.hasEnded = true
      for (const wake of this.#outputWaiters.splice(0)) wake()
    })
  }

  writeLine(line: string): void {
    this.#child.stdin.write(`${line}\n`)
  }

  /** Waits until the program has written the text, counted from `from`. */
  async waitForOutput(text: string | RegExp, from = 0): Promise<void> {
    let late = false
    const timer = setTimeout(() => {
      late = true
      for (const wake of this.#outputWaiters.splice(0)) wake()
    }, 40_000)
    const found = (): boolean =>
      typeof text === 'string' ? this.output.includes(text, from) : text.test(this.output.slice(from))
    while (!found()) {
      if (late || this.hasEnded) {
        this.#child.kill('SIGKILL')
        throw new Error(`Waited for ${String(text)} and read:\n${this.output.slice(-4000)}`)
      }
      await new Promise<void>((done) => this.#outputWaiters.push(done))
    }
    clearTimeout(timer)
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

describeWith(['apache', 'kazoo'], 'kazoo over a crash of the server', () => {
  it('keeps its session, its lock and its watches', async () => {
    const { apache, zabra } = await onBoth(async (server) => {
      const dialogue = new InteractiveProgram(python, [
        resolve(import.meta.dirname, '../python/reconnect.py'),
        server.address,
      ])
      await dialogue.waitForOutput('ready')
      await crash(server)
      dialogue.writeLine('go')
      await dialogue.waitForOutput('end\n')
      await dialogue.end('')
      // Its log says how often it tried, which is a matter of moments.
      const lines = dialogue.output.trimEnd().split('\n')
      return lines.filter((line) => !/^(Connect|Transition|Failed|Session)/.test(line)).join('\n')
    })
    expect(zabra).toEqual(apache)
    expect(zabra).toContain('same session True')
  })
})

describeWith(
  ours === 'zabra' ? ['cliMt'] : ['cliMt', 'apache'],
  'the C client over a crash of the server',
  () => {
    it('sets its watches again and hears what happened meanwhile', async () => {
      await using server = await Server.start({ kind: ours })
      const other = await Client.connect(server.port)
      for (const path of ['/data', '/children', '/kept']) await other.create(path)
      other.drop()
      const dialogue = new InteractiveProgram(cliMt, [server.address])
      await dialogue.waitForOutput('CONNECTED_STATE')
      for (const command of [
        'wexists /data',
        'wexists /absent',
        'ls /children',
        'wexists /kept',
        'create +e /e',
      ])
        dialogue.writeLine(command)
      await dialogue.waitForOutput('name = /e')
      const from = dialogue.output.length
      // The shell may come back before this client has spoken; it then hears at once what it would hear on its return.
      await crash(server)
      const after = await Client.connect(server.port)
      await after.set('/data', 'changed')
      await after.create('/absent')
      await after.create('/children/one')
      await dialogue.waitForOutput(/CHANGED_EVENT state = CONNECTED_STATE for path \/data/, from)
      await dialogue.waitForOutput(/CREATED_EVENT state = CONNECTED_STATE for path \/absent/, from)
      await dialogue.waitForOutput(/CHILD_EVENT state = CONNECTED_STATE for path \/children/, from)
      await after.set('/kept', 'now')
      await dialogue.waitForOutput(/CHANGED_EVENT state = CONNECTED_STATE for path \/kept/, from)
      expect(await after.exists('/e')).toBeDefined()
      expect(dialogue.output.slice(from)).not.toContain('EXPIRED')
      await dialogue.end('quit')
      expect(await after.exists('/e')).toBeUndefined()
      await after.close()
    })
  },
)

describeWith(['apache'], "Apache ZooKeeper's shell over a crash of the server", () => {
  it('sets its watches again and keeps its session', async () => {
    await using server = await Server.start({ kind: ours })
    const dialogue = new InteractiveProgram('java', [
      '-cp',
      apacheClassPath,
      'org.apache.zookeeper.ZooKeeperMain',
      '-server',
      server.address,
    ])
    for (const command of [
      'create /n one',
      'create -e /n/e',
      'get -w /n',
      'addWatch /n',
      'whoami',
      'sync /n',
    ])
      dialogue.writeLine(command)
    await dialogue.waitForOutput('Sync is OK')
    const from = dialogue.output.length
    await crash(server)
    const other = await Client.connect(server.port)
    await other.set('/n', 'two')
    await dialogue.waitForOutput('WatchedEvent state:SyncConnected type:NodeDataChanged path:/n', from)
    // The persistent watch has to be there before it can see this.
    await dialogue.waitForOutput('WatchedEvent state:SyncConnected type:None path:null', from)
    dialogue.writeLine('getAllChildrenNumber /n')
    await dialogue.waitForOutput('1', dialogue.output.length)
    await other.create('/n/new')
    await dialogue.waitForOutput('WatchedEvent state:SyncConnected type:NodeCreated path:/n/new', from)
    expect(await other.exists('/n/e')).toBeDefined()
    await dialogue.end('quit')
    expect(await other.exists('/n/e')).toBeUndefined()
    await other.close()
  })
})
