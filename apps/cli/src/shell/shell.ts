import { raceAbort } from '../context.ts'
import { ExitCode, Interrupted } from '../exit-codes.ts'
import { note, print, type Io } from '../io.ts'
import type { ZooKeeper } from '../session/zookeeper.ts'
import { safe, safeLine } from '../text/bytes.ts'
import { CommandSyntaxError, parseArguments, type ShellCommand } from './command.ts'
import { checkPath, toShellExit, ShellFailure } from './failures.ts'
import { splitWords } from './split.ts'
import { ShellWatches } from './shell-watches.ts'

/** What a shell is made of. */
export interface ShellOptions {
  readonly io: Io
  readonly commands: ReadonlyMap<string, ShellCommand>
  readonly server: string
  /** Opens a session on a server. */
  readonly open: (server: string) => Promise<ZooKeeper>
  /** Called after something was printed while a person may be typing. */
  readonly refresh?: () => void
}

/** Takes lines as ZooKeeper's shell does, and prints as it does. */
export class Shell {
  readonly io: Io
  readonly commands: ReadonlyMap<string, ShellCommand>
  readonly watches: ShellWatches
  /** Every line that was run, the current one included. */
  readonly history: string[] = []
  areWatchesPrinted = true
  /** No further line is wanted. */
  hasQuit = false
  readonly #open: (server: string) => Promise<ZooKeeper>
  readonly #refresh: () => void
  /** Ends the command under way when it aborts. */
  #running: AbortController | undefined
  #server: string
  #zk: ZooKeeper | undefined

  constructor({ io, commands, server, open, refresh = () => {} }: ShellOptions) {
    this.io = io
    this.commands = commands
    this.#server = server
    this.#open = open
    this.#refresh = refresh
    this.watches = new ShellWatches((type, path) => this.#printEvent('SyncConnected', type, path))
  }

  /** The session. Throws when there is none. */
  get zk(): ZooKeeper {
    if (this.#zk === undefined) throw new NotConnected()
    return this.#zk
  }

  /** Aborts when the command under way, or the whole program, is to end. */
  get signal(): AbortSignal {
    const { signal } = this.io
    return this.#running === undefined ? signal : AbortSignal.any([signal, this.#running.signal])
  }

  /** Ends the command under way as Ctrl-C does. False when there is none. */
  interrupt(): boolean {
    this.#running?.abort(new Interrupted('SIGINT'))
    return this.#running !== undefined
  }

  /** What stands before the line that is typed. */
  get prompt(): string {
    const state = this.#zk === undefined ? 'CLOSED' : 'CONNECTED'
    return `[zk: ${this.#zk?.server ?? this.#server}(${state}) ${this.history.length}] `
  }

  /** Opens a session, on another server when one is named, and ends the one before. */
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

  /** Ends the session. */
  async close(): Promise<void> {
    const zk = this.#zk
    this.#zk = undefined
    this.watches.clear()
    await zk?.close()
  }

  /** Tells something that no command has asked for. */
  notice(line: string): void {
    note(this.io, line)
    this.#refresh()
  }

  /** Prints a line of an answer. */
  out(text: string): void {
    print(this.io, safe(text))
  }

  /** Prints a line of a complaint, or of what ZooKeeper's shell prints beside its answers. */
  err(text: string): void {
    this.io.stderr.write(`${safe(text)}\n`)
  }

  /** A path that commands may use. Throws what ZooKeeper's shell says of others. */
  path(text: string | undefined): string {
    checkPath(text ?? '')
    return text!
  }

  /** Runs one line and resolves to the exit code that it stands for. */
  async execute(line: string): Promise<number> {
    const all = splitWords(line)
    if (all?.length === 0) return ExitCode.ok
    this.history.push(line)
    if (all === undefined) {
      this.err('Expected a line that closes its quotes, got one that does not')
      return ExitCode.usage
    }
    return this.#run(all)
  }

  /** Runs the words of one command as they are, which no quotes hold together. */
  async executeWords(words: readonly string[]): Promise<number> {
    this.history.push(words.join(' '))
    return this.#run(words)
  }

  async #run([name = '', ...words]: readonly string[]): Promise<number> {
    const command = this.commands.get(name)
    if (command === undefined) {
      for (const usage of this.usage()) this.err(usage)
      this.err(`Command not found: Command not found ${safeLine(name)}`)
      return ExitCode.usage
    }
    // A line that is run again belongs to the command that does so.
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

  /** What `help` prints. */
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
    if (line !== '') this.err(line)
    return exitCode
  }

  #printEvent(state: string, type: string, path: string): void {
    if (!this.areWatchesPrinted) return
    print(this.io, '', 'WATCHER::', '', `WatchedEvent state:${state} type:${type} path:${safeLine(path)}`)
    this.#refresh()
  }
}

/** There is no session: it was closed, or lost. */
class NotConnected extends ShellFailure {
  constructor() {
    super('Not connected', ExitCode.connection)
  }
}
