import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { median, spread } from '../figures.ts'
import { load } from '../load.ts'
import { apacheMissing, startPeer } from '../peers.ts'
import { libraries, type Library } from './library.ts'
import type { ClientResult, ClientTask } from './worker.ts'

const options = new Command('bench-clients')
  .description('Measures the client of Zabra beside others from npm, against one server, interleaved')
  .option('--peers <folder>', 'a folder whose node_modules hold the other clients', '.')
  .option('--rounds <n>', 'rounds; medians are taken over them', Number, 3)
  .option('--seconds <n>', 'seconds of each measurement', Number, 3)
  .option('--depth <n>', 'requests in flight', Number, 256)
  .option('--connections <n>', 'clients in the process that share the requests in flight', Number, 1)
  .option('--size <bytes>', 'bytes of data in a znode', Number, 100)
  .option('--clients <n>', 'clients in one process, for the memory figure', Number, 1000)
  .option('--server <name>', 'apache or zabra', 'apache')
  .option('--flags <flags>', 'flags of the Node that runs a library, such as --no-opt', '')
  .option('--only <works>', 'some of get, set, one get, one set, garbage, memory, separated by commas')
  .parse()
  .opts<{
    peers: string
    rounds: number
    seconds: number
    depth: number
    connections: number
    size: number
    clients: number
    server: string
    flags: string
    only?: string
  }>()

function measure(task: ClientTask): Promise<ClientResult> {
  return new Promise((done, failed) => {
    const child = fork(fileURLToPath(new URL('clients/worker.js', import.meta.url)), [JSON.stringify(task)], {
      execArgv: ['--expose-gc', ...options.flags.split(' ').filter((flag) => flag !== '')],
      // The C client logs to standard error.
      stdio: ['ignore', 'inherit', 'ignore', 'ipc'],
    })
    // A library that hangs is killed and reported; the others continue.
    const limit = setTimeout(() => child.kill('SIGKILL'), (task.seconds * 2 + 45) * 1000)
    child.once('message', (result) => done(result as ClientResult))
    child.once('exit', (code, signal) => {
      clearTimeout(limit)
      failed(new Error(`${task.library} ended with ${signal ?? code} at "${task.work}"`))
    })
  })
}

const works: readonly (readonly [ClientTask['work'], string])[] = [
  ['get', 'gets a second'],
  ['set', 'sets a second'],
  ['one get', 'one get at a time, p50 µs'],
  ['one set', 'one set at a time, p50 µs'],
  ['garbage', 'bytes of garbage a get'],
  ['memory', 'bytes a client, at rest'],
]

const wanted = options.only?.split(',')
const missing = options.server === 'apache' ? apacheMissing() : undefined
if (missing !== undefined) throw new Error(missing)
const folder = resolve(options.peers)
const present = libraries.filter(
  (library) =>
    library.startsWith('@zabra/client') ||
    library === 'node:net' ||
    existsSync(join(folder, 'node_modules', library)),
)
for (const library of libraries) {
  if (!present.includes(library))
    console.log(`Without ${library}: npm install it in some folder and name that with --peers`)
}
console.log(
  `${cpus().length} × ${cpus()[0]?.model ?? 'processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, node ${process.version}, server: ${options.server}`,
)
const figures = new Map<string, Map<Library, number[]>>()
const note = (name: string, library: Library, value: number): void => {
  const row = figures.get(name) ?? new Map<Library, number[]>()
  figures.set(name, row.set(library, [...(row.get(library) ?? []), value]))
}
/**
 * The server's ceiling, measured over raw sockets: with three load processes, and with the same connections and requests in
 * flight as the libraries. A library that comes near the second figure is limited by the server.
 */
const ceilings = new Map<string, number[]>()
async function noteCeilings(work: 'get' | 'set', servers: string): Promise<void> {
  const { seconds, size, connections, depth } = options
  const shapes = [
    ['three raw processes', '24', '64', '3'],
    [
      `${connections} × ${Math.ceil(depth / connections)} raw`,
      String(connections),
      String(Math.ceil(depth / connections)),
      '1',
    ],
  ] as const
  for (const [name, c, d, p] of shapes) {
    const [result] = await load(
      servers,
      '-m',
      work,
      '-c',
      c,
      '-d',
      d,
      '-p',
      p,
      '-s',
      String(seconds),
      '--size',
      String(size),
    )
    const key = `${work}s a second, ${name}`
    ceilings.set(key, [...(ceilings.get(key) ?? []), result!.perSecond])
  }
}

const server = await startPeer(options.server === 'apache' ? 'apache' : 'zabra')
try {
  for (let round = 0; round < options.rounds; round++) {
    for (const work of ['get', 'set'] as const)
      if (wanted?.includes(work) ?? true) await noteCeilings(work, server.servers)
    for (const [work, name] of works) {
      if (wanted?.includes(work) === false) continue
      for (const library of round % 2 === 0 ? present : present.toReversed()) {
        if (library === 'node:net' && work !== 'memory') continue
        const { peers: _, rounds: __, server: ___, only: ____, flags: _____, ...settings } = options
        const task = { library, folder, port: server.ports[0]!, work, ...settings }
        try {
          const { value, cpu, heap, burst, whole } = await measure(task)
          note(name, library, value)
          if (burst !== undefined) note('bytes a client, just connected', library, burst)
          if (whole !== undefined) note('MiB of the whole process, at rest', library, whole / 2 ** 20)
          if (heap !== undefined) note('bytes of heap a client', library, heap)
          if (cpu !== undefined) note(`${work}: client CPU, µs each`, library, cpu)
        } catch (error) {
          console.log(`Without a figure: ${(error as Error).message}`)
        }
      }
    }
  }
} finally {
  await server.stop()
}

const shown = (value: number): string =>
  Number.isNaN(value) ? '–' : value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
console.log(
  `\n| figure | ${present.join(' | ')} | spread |\n| --- |${present.map(() => ' ---: |').join('')} ---: |`,
)
for (const [name, row] of figures) {
  const values = present.map((library) => row.get(library) ?? [])
  const noise = Math.max(...values.filter(({ length }) => length > 0).map(spread))
  console.log(
    `| ${name} | ${values.map((list) => shown(median(list))).join(' | ')} | ±${Math.round(noise * 100)} % |`,
  )
}
for (const [name, values] of ceilings) {
  console.log(
    `The server's ceiling, ${name}: ${shown(median(values))} ±${Math.round(spread(values) * 100)} %`,
  )
}
