import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { Command } from 'commander'
import { runElsewhere } from './elsewhere.ts'
import { median, percentile, spread } from './figures.ts'
import { populate, type Work } from './load.ts'
import { holdWatches } from './watches.ts'
import { apacheMissing, startApache, startZabra, type Peer } from './peers.ts'

interface Figure {
  readonly name: string
  readonly unit: string
  readonly better: 'higher' | 'lower'
  readonly zabra: number[]
  readonly apache: number[]
}

const program = new Command('bench')
  .description(
    'Measures a Zabra server beside Apache ZooKeeper on this machine, interleaved, each round on fresh servers',
  )
  .option('--rounds <n>', 'rounds; medians are taken over them', Number, 3)
  .option('--seconds <n>', 'seconds of counting for each load', Number, 5)
  .option('--connections <n>', 'connections of a throughput load', Number, 60)
  .option('--depth <n>', 'requests in flight on each connection', Number, 32)
  .option('--size <bytes>', 'bytes of data in a znode', Number, 100)
  .option('--processes <n>', 'processes that generate load', Number, 2)
  .option('--nodes <n>', 'znodes for the memory figure; 0 leaves it out', Number, 200_000)
  .option('--watches <n>', 'watches for the memory figure; 0 leaves it out', Number, 100_000)
  .option('--watchers <n>', 'connections that hold them', Number, 10_000)
  .option('--only <peer>', 'zabra or apache alone')
  .option('--work <names>', 'comma-separated: get,set,create,mixed,latency', 'get,set,create,mixed,latency')
  .option('--json <file>', 'writes the figures there')
  .option('--node-flag <flag...>', 'flags for the node that runs our server, such as --cpu-prof')
  .parse()
const options = program.opts<{
  rounds: number
  seconds: number
  connections: number
  depth: number
  size: number
  processes: number
  nodes: number
  watches: number
  watchers: number
  only?: string
  work: string
  json?: string
  nodeFlag?: string[]
}>()

const figures = new Map<string, Figure>()
function note(peer: Peer, name: string, unit: string, better: 'higher' | 'lower', value: number): void {
  let figure = figures.get(name)
  if (!figure) figures.set(name, (figure = { name, unit, better, zabra: [], apache: [] }))
  figure[peer.name as 'zabra' | 'apache'].push(value)
  console.log(`  ${peer.name.padEnd(7)} ${name.padEnd(28)} ${round(value)} ${unit}`)
}

const round = (value: number): string =>
  value >= 1000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)

async function throughput(peer: Peer, work: Work): Promise<void> {
  const share = Math.ceil(options.connections / options.processes)
  const before = peer.cpuSeconds()
  const results = await Promise.all(
    Array.from({ length: options.processes }, (_, index) =>
      runElsewhere({
        port: peer.port,
        work,
        connections: share,
        depth: options.depth,
        size: options.size,
        seconds: options.seconds,
        tag: `${work}-${index}`,
      }),
    ),
  )
  const operations = results.reduce((sum, { operations: count }) => sum + count, 0)
  const errors = results.reduce((sum, result) => sum + result.errors, 0)
  if (errors > 0) throw new Error(`${errors} of ${operations} ${work} requests to ${peer.name} failed`)
  note(
    peer,
    `${work} per second`,
    'op/s',
    'higher',
    results.reduce((sum, result) => sum + result.operations / result.seconds, 0),
  )
  note(
    peer,
    `${work} latency p99`,
    'ms',
    'lower',
    percentile(
      results.flatMap(({ samples }) => samples),
      0.99,
    ) / 1000,
  )
  // The warm-up's work is in the processor time too, so it is charged to 1.25 times the counted operations.
  note(
    peer,
    `${work} server CPU`,
    'µs/op',
    'lower',
    ((peer.cpuSeconds() - before) * 1e6) / (operations * 1.25),
  )
}

async function latency(peer: Peer): Promise<void> {
  for (const work of ['get', 'set'] as const) {
    const { samples } = await runElsewhere({
      port: peer.port,
      work,
      connections: 1,
      depth: 1,
      size: options.size,
      seconds: options.seconds,
      tag: `one-${work}`,
    })
    note(peer, `one client ${work} p50`, 'µs', 'lower', median(samples))
  }
}

async function memory(peer: Peer): Promise<void> {
  const before = peer.resident()
  const data = new Uint8Array(options.size).fill(120)
  await populate(peer.port, ['/memory'], data)
  await populate(
    peer.port,
    Array.from({ length: options.nodes }, (_, index) => `/memory/node${String(index).padStart(8, '0')}`),
    data,
  )
  note(peer, 'resident memory a znode', 'bytes', 'lower', (peer.resident() - before) / options.nodes)
}

async function watchMemory(peer: Peer): Promise<void> {
  const { watchers, watches } = options
  let before = peer.resident()
  const grown = (): number => {
    const now = peer.resident()
    const growth = now - before
    before = now
    return growth
  }
  await holdWatches(
    peer.port,
    { connections: watchers, watches },
    () => note(peer, 'resident memory a connection', 'bytes', 'lower', grown() / watchers),
    () => note(peer, 'resident memory a watch', 'bytes', 'lower', grown() / watches),
  )
}

const missing = options.only === 'zabra' ? undefined : apacheMissing()
if (missing) console.log(`Without Apache ZooKeeper: ${missing}`)
const starts = [() => startZabra(options.nodeFlag), startApache].filter((_, index) =>
  index === 0 ? options.only !== 'apache' : options.only !== 'zabra' && !missing,
)
const works = options.work.split(',').filter((name) => name !== '')

console.log(
  `${cpus().length} × ${cpus()[0]?.model ?? 'processor'}, ${Math.round(totalmem() / 2 ** 30)} GiB, node ${process.version}`,
)
for (let turn = 1; turn <= options.rounds; turn++) {
  console.log(`Round ${turn} of ${options.rounds}`)
  for (const start of turn % 2 === 1 ? starts : starts.toReversed()) {
    const peer = await start()
    try {
      note(peer, 'start to serving, empty', 'ms', 'lower', peer.startMs)
      for (const work of works) {
        if (work === 'latency') await latency(peer)
        else await throughput(peer, work as Work)
      }
    } finally {
      await peer.stop()
    }
    for (const [wanted, measure] of [
      [options.nodes > 0, memory],
      [options.watches > 0, watchMemory],
    ] as const) {
      if (!wanted) continue
      const fresh = await start()
      try {
        await measure(fresh)
      } finally {
        await fresh.stop()
      }
    }
  }
}

console.log(
  `\n| figure | Zabra | Apache ZooKeeper | Zabra / Apache | spread |\n| --- | ---: | ---: | ---: | ---: |`,
)
for (const { name, unit, zabra, apache } of figures.values()) {
  const spreads = [zabra, apache]
    .filter((values) => values.length > 0)
    .map((values) => `±${Math.round(spread(values) * 100)} %`)
  console.log(
    `| ${name} (${unit}) | ${round(median(zabra))} | ${round(median(apache))} | ${(median(zabra) / median(apache)).toFixed(2)} | ${spreads.join(', ')} |`,
  )
}
const noisy = [...figures.values()].filter(({ zabra, apache }) =>
  [zabra, apache].some((values) => spread(values) > 0.15),
)
if (noisy.length > 0) console.log(`\nNoisy (over 15 % spread): ${noisy.map(({ name }) => name).join(', ')}`)
if (options.json) {
  writeFileSync(
    options.json,
    `${JSON.stringify({ node: process.version, cpus: cpus().length, model: cpus()[0]?.model, options, figures: [...figures.values()] }, null, 2)}\n`,
  )
}
