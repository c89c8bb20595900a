import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A server under measurement, as a process of its own. */
export interface Peer {
  readonly name: string
  readonly port: number
  /** Milliseconds from the start of the process to the first `srvr` that shows a mode. */
  readonly startMs: number
  /** User and system CPU seconds so far. */
  cpuSeconds(): number
  /** Resident memory in bytes. */
  resident(): number
  stop(): Promise<void>
}

const apacheJar = '/usr/share/java/zookeeper.jar'

/** Why Apache ZooKeeper cannot take part, or undefined when it can. */
export function apacheMissing(): string | undefined {
  return existsSync(apacheJar)
    ? undefined
    : `Apache ZooKeeper is not installed (${apacheJar}); install Debian's zookeeper package`
}

export const startApache = (): Promise<Peer> =>
  start('apache', (config) => [
    'java',
    [
      '-Xmx4g',
      '-cp',
      `/etc/zookeeper/conf:${apacheJar}`,
      'org.apache.zookeeper.server.quorum.QuorumPeerMain',
      config,
    ],
  ])

export const startZabra = (nodeFlags: readonly string[] = []): Promise<Peer> => {
  const main = createRequire(import.meta.url)
    .resolve('zabra-server/package.json')
    .replace('package.json', 'dist/main.js')
  return start('zabra', (config) => [process.execPath, [...nodeFlags, main, config]])
}

async function start(name: string, command: (config: string) => [string, string[]]): Promise<Peer> {
  const folder = mkdtempSync(join(tmpdir(), `zabra-bench-${name}-`))
  const port = await freePort()
  const config = join(folder, 'zoo.cfg')
  writeFileSync(
    config,
    [
      `dataDir=${folder}`,
      `clientPort=${port}`,
      'clientPortAddress=127.0.0.1',
      'tickTime=2000',
      'maxClientCnxns=0',
      'admin.enableServer=false',
      '4lw.commands.whitelist=*',
      '',
    ].join('\n'),
  )
  const [program, args] = command(config)
  const began = performance.now()
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => (complaint = (complaint + chunk.toString()).slice(-2000)))
  await ready(child, port, () => complaint)
  const startMs = performance.now() - began
  const pid = child.pid!
  return {
    name,
    port,
    startMs,
    cpuSeconds: () => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return (Number(fields[11]) + Number(fields[12])) / 100
    },
    resident: () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024,
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null) {
        child.kill('SIGTERM')
        await ended
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function ready(child: ChildProcess, port: number, complaint: () => string): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    if (child.exitCode !== null)
      throw new Error(`The server ended with ${child.exitCode} before it served: ${complaint()}`)
    if ((await fourLetterWord(port, 'srvr').catch(() => '')).includes('Mode:')) return
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  child.kill('SIGKILL')
  throw new Error(`The server did not serve within 30 s: ${complaint()}`)
}

export function fourLetterWord(port: number, word: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write(word))
    socket.on('data', (chunk) => (text += chunk.toString()))
    socket.once('close', () => resolve(text))
    socket.once('error', reject)
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
