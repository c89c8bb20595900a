import { spawn, type ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from '@zabra/testkit'

export type PeerKind = 'zabra' | 'apache'
export const peerKinds: readonly PeerKind[] = ['zabra', 'apache']

/** A service under measurement: one server or an ensemble, each server a process of its own. */
export interface Peer {
  readonly kind: PeerKind
  /** `host:port` of each server, separated by commas. */
  readonly servers: string
  /** Client ports, the leader's first. */
  readonly ports: readonly number[]
  /** The folder of each server's configuration and data, the leader's first. */
  readonly folders: readonly string[]
  /** The folder of the leader's configuration and data. */
  readonly leaderFolder: string
  /** Milliseconds from the start of the processes until all of them serve. */
  readonly startMs: number
  /** User and system processor time of all processes since their start. */
  cpuSeconds(): number
  /** Processor time of the leader's main thread since its start. */
  mainThreadSeconds(): number
  /** Resident memory of all processes. */
  residentBytes(): number
  /** Forgets how much memory the processes have used at most. */
  resetPeakBytes(): void
  /** The most resident memory of each process since `resetPeakBytes`, in all. */
  peakBytes(): number
  /** Time that the leader's threads have waited in the run queue since its start, summed over threads. */
  leaderRunQueueMs(): number
  /** Starts the member that `withoutLast` left out. Resolves to the milliseconds until it serves. */
  join(): Promise<number>
  /** Kills the leader with SIGKILL. */
  killLeader(): void
  /** Stops all servers. With `keep` the data stays for another peer to start on. */
  stop(options?: { keep?: boolean }): Promise<void>
}

export interface StartOptions {
  /** Number of servers; more than one forms an ensemble. */
  readonly members?: number
  /** Does not start the last member before `join`. */
  readonly withoutLast?: boolean
  /** Flags for the Node process of a Zabra server, such as --cpu-prof. */
  readonly nodeFlags?: readonly string[]
  /** A file that receives the standard output of the servers. */
  readonly output?: string
  /** Data of a peer of the same kind and size that was stopped with `keep`. */
  readonly folder?: string
  /** Lines of the configuration that are added, or replace those of every peer; for each id of a server, where they differ. */
  readonly settings?: Settings | ((id: number) => Settings)
}

export type Settings = Readonly<Record<string, string | number>>

const apacheJar = '/usr/share/java/zookeeper.jar'

/** Returns why Apache ZooKeeper cannot run here, or undefined when it can. */
export function apacheMissing(): string | undefined {
  return existsSync(apacheJar)
    ? undefined
    : `Apache ZooKeeper is not installed (${apacheJar}); install Debian's zookeeper package`
}

/** Returns the version in a peer's `srvr` reply. */
export async function versionOf(peer: Peer): Promise<string> {
  return (
    /version: ([^\s,]+(?: zabra [^\s,]+)?)/.exec(await fourLetterWord(peer.ports[0]!, 'srvr'))?.[1] ??
    'unknown'
  )
}

/** Starts a peer on fresh data, or on the data of another one, and waits until all its servers serve. */
export async function startPeer(
  kind: PeerKind,
  options: StartOptions = {},
): Promise<Peer & { readonly folder: string }> {
  const { members = 1, nodeFlags = [], withoutLast: late = false, settings = {} } = options
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), `zabra-bench-${kind}-`))
  const ports = await freePorts(members * 3)
  const all = Array.from({ length: members }, (_, index) => index + 1)
  const ids = late ? all.slice(0, -1) : all
  const port = (id: number, which: number): number => ports[(id - 1) * 3 + which]!
  const lines = members === 1 ? [] : all.map((id) => `server.${id}=127.0.0.1:${port(id, 1)}:${port(id, 2)}`)
  const began = performance.now()
  const begin = (id: number): Launched =>
    launch(
      kind,
      writeConfig(
        join(folder, String(id)),
        id,
        port(id, 0),
        lines,
        typeof settings === 'function' ? settings(id) : settings,
      ),
      nodeFlags,
      options.output,
    )
  const children = new Map(ids.map((id) => [id, begin(id)] as const))
  const alive = (): ChildProcess[] => [...children.values()].map(({ child }) => child).filter(isAlive)
  try {
    await Promise.all(ids.map((id) => waitUntilServing(children.get(id)!, port(id, 0))))
  } catch (error) {
    for (const child of alive()) child.kill('SIGKILL')
    throw error
  }
  const startMs = performance.now() - began
  const leader = members === 1 ? 1 : await leaderOf(ids, (id) => port(id, 0))
  const order = [leader, ...ids.filter((id) => id !== leader)]
  return {
    kind,
    folder,
    servers: order.map((id) => `127.0.0.1:${port(id, 0)}`).join(','),
    ports: order.map((id) => port(id, 0)),
    folders: order.map((id) => join(folder, String(id))),
    leaderFolder: join(folder, String(leader)),
    startMs,
    cpuSeconds: () => alive().reduce((sum, { pid }) => sum + (cpuSecondsOf(pid!) ?? 0), 0),
    mainThreadSeconds: () => mainThreadSecondsOf(children.get(leader)!.child.pid!),
    residentBytes: () => alive().reduce((sum, { pid }) => sum + memoryOf(pid!, 'VmRSS'), 0),
    resetPeakBytes: () => {
      // Linux: 5 resets the high-water mark of a process.
      for (const { pid } of alive()) writeFileSync(`/proc/${pid}/clear_refs`, '5')
    },
    peakBytes: () => alive().reduce((sum, { pid }) => sum + memoryOf(pid!, 'VmHWM'), 0),
    leaderRunQueueMs: () => runQueueMsOf(children.get(leader)!.child.pid!),
    join: async () => {
      const asked = performance.now()
      const id = all.at(-1)!
      children.set(id, begin(id))
      await waitUntilServing(children.get(id)!, port(id, 0))
      return performance.now() - asked
    },
    killLeader: () => void children.get(leader)!.child.kill('SIGKILL'),
    stop: async ({ keep = false } = {}) => {
      await Promise.all(alive().map(terminate))
      if (!keep) rmSync(folder, { recursive: true, force: true })
    },
  }
}

function writeConfig(
  folder: string,
  id: number,
  clientPort: number,
  members: readonly string[],
  changed: Settings,
): string {
  const config = join(folder, 'zoo.cfg')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'myid'), String(id))
  const settings = {
    dataDir: folder,
    clientPort,
    clientPortAddress: '127.0.0.1',
    tickTime: 2000,
    initLimit: 10,
    syncLimit: 5,
    maxClientCnxns: 0,
    'admin.enableServer': 'false',
    '4lw.commands.whitelist': '*',
    ...changed,
  }
  const lines = Object.entries(settings).map(([key, value]) => `${key}=${value}`)
  writeFileSync(config, [...lines, ...members, ''].join('\n'))
  return config
}

interface Launched {
  readonly child: ChildProcess
  readonly stderr: () => string
}

function launch(kind: PeerKind, config: string, nodeFlags: readonly string[], output?: string): Launched {
  const main = createRequire(import.meta.url)
    .resolve('zabrad/package.json')
    .replace('package.json', 'dist/main.js')
  const quorumPeer = 'org.apache.zookeeper.server.quorum.QuorumPeerMain'
  const [program, args] =
    kind === 'zabra'
      ? [process.execPath, [...nodeFlags, main, config]]
      : ['java', ['-Xmx4g', '-cp', `/etc/zookeeper/conf:${apacheJar}`, quorumPeer, config]]
  const out = output === undefined ? 'ignore' : openSync(output, 'a')
  // Node reads this bundle of certificates at its start, which takes 60 ms and says nothing about the server.
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: undefined }
  const child = spawn(program, args, { env, stdio: ['ignore', out, 'pipe'] })
  if (typeof out === 'number') closeSync(out)
  let complaint = ''
  child.stderr!.on('data', (chunk: Buffer) => (complaint = (complaint + chunk.toString()).slice(-2000)))
  return { child, stderr: () => complaint }
}

/** Polls `srvr` until the server serves. The interval grows with the time waited, since polling slows the start. */
async function waitUntilServing({ child, stderr }: Launched, port: number): Promise<void> {
  const began = performance.now()
  for (let waited = 0; waited < 30_000; waited = performance.now() - began) {
    if (!isAlive(child))
      throw new Error(`A server ended with ${child.exitCode} before it served: ${stderr()}`)
    if ((await fourLetterWord(port, 'srvr').catch(() => '')).includes('Mode:')) return
    await new Promise((resolve) => setTimeout(resolve, 5 + waited / 50))
  }
  throw new Error(`A server did not serve within 30 s: ${stderr()}`)
}

async function leaderOf(ids: readonly number[], portOf: (id: number) => number): Promise<number> {
  for (const id of ids) if ((await fourLetterWord(portOf(id), 'srvr')).includes('Mode: leader')) return id
  throw new Error('All servers of an ensemble serve, and none of them leads')
}

const isAlive = (child: ChildProcess): boolean => child.exitCode === null && child.signalCode === null

function terminate(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), 20_000)
    child.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    child.kill('SIGTERM')
  })
}

/** Returns the user and system processor time of a process, or undefined when it has ended. */
export function cpuSecondsOf(pid: number): number | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
    return (Number(fields[11]) + Number(fields[12])) / 100
  } catch {
    return undefined
  }
}

const mainThreadSecondsOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e9

function memoryOf(pid: number, what: 'VmRSS' | 'VmHWM'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${what}:\\s+(\\d+)`).exec(status)?.[1]) * 1024
}

const runQueueMsOf = (pid: number): number =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + threadRunQueueMs(pid, thread), 0)

function threadRunQueueMs(pid: number, thread: string): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[1]) / 1e6
  } catch {
    // The thread has ended since it was listed.
    return 0
  }
}

export function fourLetterWord(port: number, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(word))
    socket.setTimeout(2000, () => socket.destroy())
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.once('close', () => resolve(text))
    socket.once('error', reject)
  })
}
