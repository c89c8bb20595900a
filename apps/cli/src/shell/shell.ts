import { raceAbort } from '../context.ts'
import { ExitCode, Interrupted } from '../exit-codes.ts'
import { note, print, type Io } from '../io.ts'
import type { Client } from '@zabra/client'
import { serverOf } from '../session/address.ts'
import { safe, safeLine } from '../text/bytes.ts'
import { CommandSyntaxError, parseArguments, type ShellCommand, type ShellContext } from './command.ts'
import { checkPath, toShellExit, ShellFailure } from './failures.ts'
import { closestName } from './closest-name.ts'
import { splitWords } from './split.ts'
import { ShellWatches } from './shell-watches.ts'

/** Dependencies of a shell. */
export interface ShellOptions {
  readonly io: Io
  readonly commands: ReadonlyMap<string, ShellCommand>
  readonly server: string
  /** Opens a session on `server`. */
  readonly open: (server: string) => Promise<Client>
  /** Redraws the prompt after output that arrived while the user may be typing. */
  readonly refresh?: () => void
}

/** Runs lines as ZooKeeper's shell does, with the same output. */
export class Shell implements ShellContext {
  readonly io: Io
  readonly commands: ReadonlyMap<string, ShellCommand>
  readonly watches: ShellWatches
  readonly history: string[] = []
  areWatchesPrinted = true
  hasQuit = false
  readonly #open: (server: string) => Promise<Client>
  readonly #refresh: () => void
  /** Aborts the running command. */
  #running: AbortController | undefined
  #server: string
  #zk: Client | undefined

  constructor({ io, commands, server, open, refresh = () => {} }: ShellOptions) {
    this.io = io
    this.commands = commands
    this.#server = server
    this.#open = open
    this.#refresh = refresh
    this.watches = new ShellWatches((type, path) => this.#printEvent('SyncConnected', type, path))
  }

  get zk(): Client {
    if (this.#zk === undefined) throw new NotConnected()
    return this.#zk
  }

  get signal(): AbortSignal {
    const { signal } = this.io
    return this.#running === undefined ? signal : AbortSignal.any([signal, this.#running.signal])
  }

  /** Interrupts the running command as Ctrl-C does. Returns false when no command is running. */
  interrupt(): boolean {
    this.#running?.abort(new Interrupted('SIGINT'))
    return this.#running !== undefined
  }

  /** The prompt of ZooKeeper's shell: server, state and the number of the next line. */
  get prompt(): string {
    const [server, state] =
      this.#zk === undefined ? [this.#server, 'CLOSED'] : [serverOf(this.#zk, this.#server), 'CONNECTED']
    return `[zk: ${server}(${state}) ${this.history.length}] `
  }

  async connect(server = this.#server): Promise<void> {
    await this.close()
    this.#server = server
    const zk = await this.#open(server)
    this.#zk = zk
    void zk.closed.then((reason) => {
      if (this.#zk !== zk) return
      this.#zk = undefined
      this.watches.clear()
      if (reason !== undefined) this.notice(reason.message)
    })
  }

  async close(): Promise<void> {
    const zk = this.#zk
    this.#zk = undefined
    this.watches.clear()
    await zk?.close()
  }

  /** Prints a line that no command asked for, such as a lost connection. */
  notice(line: string): void {
    note(this.io, line)
    this.#refresh()
  }

  out(text: string): void {
    print(this.io, safe(text))
  }

  err(text: string): void {
    this.io.stderr.write(`${safe(text)}\n`)
  }

  path(text: string | undefined): string {
    checkPath(text ?? '')
    return text!
  }

  async execute(line: string): Promise<number> {
    const words = splitWords(line)
    if (words?.length === 0) return ExitCode.ok
    this.history.push(line)
    if (words === undefined) {
      this.err('Expected a closing quote, got the end of the line')
      return ExitCode.usage
    }
    return this.#run(words)
  }

  /** Runs one command whose words are already split and may contain quotes. */
  async executeWords(words: readonly string[]): Promise<number> {
    this.history.push(words.join(' '))
    return this.#run(words)
  }

  async #run([name = '', ...words]: readonly string[]): Promise<number> {
    const command = this.commands.get(name)
    if (command === undefined) {
      for (const usage of this.usage()) this.err(usage)
      const near = closestName(name, this.commands.keys())
      const advice = near === undefined ? '' : `. Did you mean ${near}?`
      this.err(`Command not found: Command not found ${safeLine(name)}${advice}`)
      return ExitCode.usage
    }
    // redo runs a line inside a command: both end on the same abort.
    const isOuter = this.#running === undefined
    this.#running ??= new AbortController()
    try {
      if (!command.offline) void this.zk
      await raceAbort(Promise.resolve(command.run(this, parseArguments(command, words))), this.signal)
      return ExitCode.ok
    } catch (error) {
      return this.#printError(error, command)
    } finally {
      if (isOuter) this.#running = undefined
    }
  }

  usage(): string[] {
    const lines = [...this.commands.values()].map(
      ({ usage, help }) => `\t${usage}${help === undefined ? '' : ` # ${help}`}`,
    )
    return ['zabra shell --server host:port', ...lines.toSorted()]
  }

  #printError(error: unknown, { usage }: ShellCommand): number {
    if (error instanceof NotConnected) {
      this.out(error.message)
      return error.exitCode
    }
    if (error instanceof CommandSyntaxError) {
      if (error.message !== '') this.err(error.message)
      this.err(usage)
      return ExitCode.usage
    }
    const { line, exitCode } = toShellExit(error)
    // The program prints why it ends.
    if (line !== '' && !this.io.signal.aborted) this.err(line)
    return exitCode
  }

  #printEvent(state: string, type: string, path: string): void {
    if (!this.areWatchesPrinted) return
    print(this.io, '', 'WATCHER::', '', `WatchedEvent state:${state} type:${type} path:${safeLine(path)}`)
    this.#refresh()
  }
}

/** A command needs a session and there is none: it was closed or lost. */
class NotConnected extends ShellFailure {
  constructor() {
    super('Not connected', ExitCode.connection)
  }
}
