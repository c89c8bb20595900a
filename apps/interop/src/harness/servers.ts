import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { fourLetterWord } from './client.ts'
import { freePort } from './ports.ts'

export type Kind = 'apache-3.8' | 'apache-3.9' | 'zabra'

/** The server under test. An Apache release here validates the suites themselves. */
export const serverUnderTest = (process.env['ZABRA_INTEROP_OURS'] ?? 'zabra') as Kind
export const reference: Kind = 'apache-3.8'

export const apacheJar = '/usr/share/java/zookeeper.jar'
/** Dependencies of Apache ZooKeeper's TLS that Debian's package does not declare. */
export const nettyJars = ['codec', 'resolver', 'transport-native-unix-common'].map(
  (name) => `/usr/share/java/netty-${name}.jar`,
)
/** Without the folder of its configuration: it has no logger that would read it, and an archive of classes admits no folder. */
export const apacheClassPath = [apacheJar, ...nettyJars].join(':')
/** Returns the class path of Apache ZooKeeper 3.9. */
export const newestClassPath = (): string => `${process.env['ZABRA_APACHE_39']}/*`
/** Returns the arguments of `java` that start Apache ZooKeeper's shell. */
export const apacheShell = (server: Server, ...args: readonly string[]): string[] => [
  '-cp',
  apacheClassPath,
  'org.apache.zookeeper.ZooKeeperMain',
  '-server',
  server.address,
  ...args,
]
const zabraMain = resolve(import.meta.dirname, '../../../server/dist/main.js')

export interface ServerOptions {
  readonly kind: Kind
  /** Additional settings of zoo.cfg. */
  readonly config?: Readonly<Record<string, string | number>>
  readonly dataDir?: string
  /** The client port; a free one by default. */
  readonly port?: number
  /** Options of the JVM. Zabra receives them as `JVMFLAGS`. */
  readonly javaFlags?: readonly string[]
  /** The limit of the heap of a Zabra server in MiB; that of Node by default. */
  readonly heapMiB?: number
  /** Additional variables of the server process. */
  readonly env?: Readonly<Record<string, string>>
  /** The locale of the server process; one with UTF-8 by default. */
  readonly locale?: string
}

const running = new Set<ChildProcess>()
const folders = new Set<string>()

/** Kills every program and removes every folder of the tests of this file. */
export function cleanUp(): void {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders)
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // A process of a killed program still writes there; the folder stays in the system's folder for temporary files.
    }
  folders.clear()
}

process.on('exit', cleanUp)

export function scratch(label: string): string {
  const folder = mkdtempSync(join(tmpdir(), `zabra-interop-${label}-`))
  folders.add(folder)
  return folder
}

/** Java before 18 encodes names and credentials by the locale, so tests do not use that of the machine. */
const locale = 'C.UTF-8'

/**
 * Without performance files: a JVM prints a warning when another JVM locks its file for a moment while it cleans up the shared
 * folder. With the collector and the compiler that cost a program least that lives for seconds.
 */
const javaFlagsOfAll = ['-XX:-UsePerfData', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1']

/** The variable with the folder for archives of classes. */
export const CLASS_ARCHIVES = 'ZABRA_CLASS_ARCHIVES'

/** Returns the file for the archive of the classes of a class path, or undefined when this run makes none. */
export function classArchive(path: string): string | undefined {
  const folder = process.env[CLASS_ARCHIVES]
  if (folder === undefined) return undefined
  return join(folder, `${createHash('sha256').update(path).digest('hex').slice(0, 16)}.jsa`)
}

/** Returns the options of a JVM that starts from the archive of its classes, if that is made. */
function archiveFlags(args: readonly string[]): string[] {
  const archive = classArchive(args[args.indexOf('-cp') + 1] ?? '')
  if (archive === undefined || !existsSync(archive) || args.some((arg) => arg.startsWith('-XX:Archive')))
    return []
  // An archive that does not fit is ignored, without a warning among what the program prints.
  return [`-XX:SharedArchiveFile=${archive}`, '-Xlog:disable']
}

/** Starts a program that is killed when this process exits, even by SIGKILL. */
export function spawnOwned(
  program: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
) {
  const guard = existsSync('/usr/bin/setpriv')
  const all = program === 'java' ? [...javaFlagsOfAll, ...archiveFlags(args), ...args] : [...args]
  const child = spawn(
    guard ? '/usr/bin/setpriv' : program,
    guard ? ['--pdeathsig', 'SIGKILL', program, ...all] : all,
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { ...process.env, LC_ALL: locale, ...options.env },
    },
  )
  running.add(child)
  child.once('exit', () => running.delete(child))
  // A program that exits before it has read its input breaks the pipe; its exit code is checked elsewhere.
  child.stdin.on('error', () => {})
  return child
}

/** The longest start of a server, on a busy machine too; less than the time limit of hooks, so that its output is in the error. */
const START_MS = 55_000

/**
 * Pauses between two looks at whether something has happened, for a twentieth of the time that they have taken since `began`: those who
 * ask a server take processor time from it.
 */
export const pauseBetweenPolls = (began: number): Promise<void> =>
  new Promise((done) => setTimeout(done, 20 + (Date.now() - began) / 20))

/** A server process with its own port and folder. */
export class Server {
  readonly kind: Kind
  readonly port: number
  readonly dataDir: string
  readonly #options: ServerOptions
  #child: ChildProcess | undefined
  #output = ''
  /** Its configuration file; empty before the first start. */
  configFile = ''

  private constructor(options: ServerOptions, port: number, dataDir: string) {
    this.kind = options.kind
    this.#options = options
    this.port = port
    this.dataDir = dataDir
  }

  static async start(options: ServerOptions): Promise<Server> {
    const server = await Server.plan(options)
    await server.start()
    return server
  }

  /** Chooses the port and the folder of a server without starting it. */
  static async plan(options: ServerOptions): Promise<Server> {
    const port = options.port ?? (await freePort())
    return new Server(options, port, options.dataDir ?? scratch(options.kind))
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** The exit code of the process; undefined before it has one. */
  get exitCode(): number | undefined {
    return this.#child?.exitCode ?? undefined
  }

  /** The last 20 kB of the server's output, for failure messages. */
  get output(): string {
    return this.#output
  }

  async start(): Promise<void> {
    const file = join(scratch('config'), 'zoo.cfg')
    this.configFile = file
    const settings: Record<string, string | number> = {
      tickTime: 2000,
      dataDir: this.dataDir,
      clientPort: this.port,
      clientPortAddress: '127.0.0.1',
      maxClientCnxns: 0,
      'admin.enableServer': 'false',
      '4lw.commands.whitelist': '*',
      ...this.#options.config,
    }
    writeFileSync(
      file,
      Object.entries(settings)
        .map(([key, value]) => `${key}=${value}\n`)
        .join(''),
    )
    const [program, args] = command(this.kind, file, this.#options.javaFlags ?? [])
    const { locale: chosen, javaFlags, heapMiB } = this.#options
    const env = {
      ...this.#options.env,
      ...(chosen === undefined ? {} : { LC_ALL: chosen }),
      ...(heapMiB === undefined ? {} : { NODE_OPTIONS: `--max-old-space-size=${heapMiB}` }),
      ...(javaFlags === undefined || this.kind !== 'zabra' ? {} : { JVMFLAGS: javaFlags.join(' ') }),
      ...this.#options.env,
    }
    const child = spawnOwned(program, args, { cwd: this.dataDir, env })
    this.#child = child
    this.#output = ''
    const keep = (chunk: Buffer): void =>
      void (this.#output = (this.#output + chunk.toString()).slice(-20_000))
    child.stdout.on('data', keep)
    child.stderr.on('data', keep)
    await this.#ready()
  }

  async #ready(): Promise<void> {
    const began = Date.now()
    while (Date.now() - began < START_MS) {
      if (!this.isRunning) throw new Error(`The ${this.kind} server ended before it served:\n${this.#output}`)
      if (
        (await fourLetterWord(this.port, 'srvr', { timeoutMs: 5000 }).catch(() => '')).includes('Mode:') &&
        (await this.#isTlsPortOpen())
      )
        return
      await pauseBetweenPolls(began)
    }
    await this.kill()
    throw new Error(`The ${this.kind} server did not serve within ${START_MS / 1000} s:\n${this.#output}`)
  }

  /** Returns whether the TLS port is open: Apache ZooKeeper serves its plain port before. */
  async #isTlsPortOpen(): Promise<boolean> {
    const port = this.#options.config?.['secureClientPort']
    if (port === undefined) return true
    const socket = connect({ host: '127.0.0.1', port: Number(port) })
    const open = await new Promise<boolean>((done) => {
      socket.once('connect', () => done(true))
      socket.once('error', () => done(false))
    })
    socket.destroy()
    return open
  }

  /** Descriptors that the process has open: files, sockets, pipes. */
  get openDescriptors(): number {
    return readdirSync(`/proc/${this.#child?.pid}/fd`).length
  }

  /** Resident memory in bytes. */
  get residentBytes(): number {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${this.#child?.pid}/status`, 'utf8'))?.[1]) * 1024
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child
    if (!child || !this.isRunning) return
    const ended = new Promise<void>((done) => child.once('exit', () => done()))
    child.kill(signal)
    const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
    await ended
    clearTimeout(timer)
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name)
  }

  /** What the process writes, which is read all the time; a test may pause it. */
  get standardOutput(): Readable {
    return this.#child!.stdout!
  }

  /** Whether SIGSTOP has stopped all of its threads. */
  get isStopped(): boolean {
    const tasks = `/proc/${this.#child?.pid}/task`
    try {
      return readdirSync(tasks).every((task) =>
        /^State:\s+T/m.test(readFileSync(join(tasks, task, 'status'), 'utf8')),
      )
    } catch {
      // A thread has ended since the list was read.
      return false
    }
  }

  stop(): Promise<void> {
    return this.#end('SIGTERM')
  }

  kill(): Promise<void> {
    return this.#end('SIGKILL')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    rmSync(this.dataDir, { recursive: true, force: true })
  }
}

function command(kind: Kind, file: string, javaFlags: readonly string[]): [string, string[]] {
  if (kind === 'zabra') return [process.execPath, [zabraMain, file]]
  const path = kind === 'apache-3.8' ? apacheClassPath : newestClassPath()
  const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
  return ['java', ['-Xmx512m', ...javaFlags, '-cp', path, main, file]]
}

export interface ProgramResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Both streams in order of arrival. */
  readonly output: string
}

/** Runs a program with the given input until it exits. Kills it and rejects after the timeout. */
export function run(
  program: string,
  args: readonly string[],
  {
    input = '',
    timeoutMs = 60_000,
    ...options
  }: { input?: string; timeoutMs?: number; env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<ProgramResult> {
  return new Promise((done, reject) => {
    const child = spawnOwned(program, args, options)
    let [stdout, stderr, output] = ['', '', '']
    child.stdout.on('data', (chunk: Buffer) => ((stdout += chunk.toString()), (output += chunk.toString())))
    child.stderr.on('data', (chunk: Buffer) => ((stderr += chunk.toString()), (output += chunk.toString())))
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`${program} did not exit within ${timeoutMs} ms; its output:\n${output.slice(-5000)}`))
    }, timeoutMs)
    child.once('error', reject)
    child.once('close', (code) => {
      clearTimeout(timer)
      done({ code, stdout, stderr, output })
    })
    child.stdin.end(input)
  })
}
