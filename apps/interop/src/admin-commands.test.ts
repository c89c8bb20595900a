import { expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { adminSettings, apache, authorization, SESSION_MS } from './harness/admin-settings.ts'
import { Client } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { describeWith } from './harness/requirements.ts'
import { Server, type Kind } from './harness/servers.ts'

const settings = (kind: Kind, port: number) =>
  adminSettings(kind, port, {
    'admin.role.operate': 'ip:127.0.0.1',
    'admin.role.backup': 'digest:ada:IxAt5/aGZ6XqgQra30E08mm/X6Q=',
  })

/**
 * Commands whose answers differ on purpose, which docs/divergence.md explains, have the properties of a Java machine, or the settings of
 * the server.
 */
const different = new Set([
  'initial_configuration',
  'monitor',
  'restore',
  'shed_connections',
  'system_properties',
  'zabstate',
])
const queries: Readonly<Record<string, string>> = {
  snapshot: '?streaming=false',
  set_trace_mask: '?traceMask=306',
}

interface Answers {
  /** All commands, as the index lists them. */
  readonly names: readonly string[]
  /** The status and the comparable body of each by its name, with the headers of `snapshot`. */
  readonly answers: Readonly<Record<string, string>>
}

/** Asks all commands of a server by GET. */
async function ask(port: number): Promise<Answers> {
  const url = `http://127.0.0.1:${port}/commands`
  const index = await (await fetch(url)).text()
  const names = [...index.matchAll(/^<a href="\/commands\/(\w+)">\1<\/a>$/gm)].map(([, name]) => name!)
  const answers: Record<string, string> = {}
  for (const name of names) {
    if (different.has(name)) continue
    const headers: Record<string, string> = name === 'snapshot' ? { authorization } : {}
    const response = await fetch(`${url}/${name}${queries[name] ?? ''}`, { headers })
    const type = response.headers.get('content-type')
    const sent = ['last_zxid', 'snapshot_size'].filter((header) => response.headers.has(header))
    answers[name] = `${response.status} ${type} ${sent.join(' ')}\n${comparable(name, await response.text())}`
  }
  return { names, answers }
}

/**
 * Values that two servers cannot have in common: times, sizes of files, and what Apache ZooKeeper counts otherwise, such as connections
 * without certificates with Netty alone.
 */
const volatile =
  /^( *"(?:established|last_cxid|last_zxid|last_response_time|last_latency|datadir_size|logdir_size|data_dir_size|log_dir_size|queued_packets_size|timestamp|uptime|zxid|last_processed_zxid|non_mtlslocal_conn_count|packets_\w+|(?:min|avg|max)_latency|(?:last|min|max)_\w+_size|host\.name|java\.\w+(?:\.\w+)?|os\.arch|os\.memory\.\w+|user\.\w+)" : )[^\n]*?(,?)$/gm

/** Returns a body with equal values in place of ids, ports, folders and `volatile` ones. */
function comparable(name: string, body: string): string {
  const text = body
    .replaceAll(/"\/[^"]*(?:zabra-interop|version-2)[^"]*"/g, '"folder"')
    .replaceAll(/"3\.9\.\d[^"]*"/g, '"version"')
    .replaceAll(/(127\.0\.0\.1|localhost|0:0:0:0:0:0:0:0):\d+/g, 'host:port')
    .replaceAll(/("client_port" : )\d+/g, '$1port')
    .replaceAll(/\b\d{14,20}\b/g, 'id')
    .replaceAll(volatile, '$1value$2')
  // The order of reflection differs from release to release of Java.
  if (name === 'server_stats' || name === 'stats')
    return text.replaceAll(',\n', '\n').split('\n').toSorted().join('\n')
  if (name !== 'dump') return text
  // Buckets are of clocks, and learners of Apache ZooKeeper have none. The order of the others is that of a hash table.
  const [, ephemerals] = text.split('"session_id_to_ephemeral_paths"')
  return ephemerals!.replaceAll(',\n', '\n').split('\n').toSorted().join('\n')
}

/** Creates a node with an ephemeral one below, and a watch on it. */
async function use(client: Client, path: string): Promise<void> {
  await client.create(path)
  await client.create(`${path}/e`, '', 1)
  await client.get(path)
}

async function alone(kind: Kind): Promise<Answers> {
  const port = await freePort()
  await using server = await Server.start({ kind, config: settings(kind, port) })
  const client = await Client.connect(server.port, { timeoutMs: SESSION_MS })
  await use(client, '/app')
  // The server goes with the scope.
  return await ask(port)
}

/** Asks members, with an observer, of which the third leads. */
async function members(kind: Kind): Promise<Answers[]> {
  const ports = await Promise.all([1, 2, 3, 4].map(freePort))
  const ensemble = await Ensemble.plan({
    kinds: [kind, kind, kind, kind],
    observers: [4],
    configOf: (id) => settings(kind, ports[id - 1]!),
  })
  await ensemble.start(2, 3)
  await ensemble.start(1, 4)
  expect(await ensemble.leader()).toBe(3)
  for (const id of [1, 3, 4]) await use(await ensemble.connect(id, SESSION_MS), `/app${id}`)
  await ensemble.waitUntilSynced()
  const answers: Answers[] = []
  for (const id of [1, 3, 4]) answers.push(await ask(ports[id - 1]!))
  await ensemble.stop(...ensemble.ids)
  return answers
}

function expectEqual(got: Answers, expected: Answers): void {
  expect(got.names.filter((name) => name !== 'shed_connections')).toEqual(expected.names)
  expect(expected.names).toHaveLength(28)
  expect(got.answers).toEqual(expected.answers)
}

describeWith(['newestApache'], 'the commands of the HTTP port', () => {
  it('answer as those of Apache ZooKeeper 3.9 on a server alone', async () => {
    const [got, expected] = await Promise.all([alone('zabra'), alone(apache)])
    expectEqual(got, expected)
  }, 600_000)

  it('answer as those of Apache ZooKeeper 3.9 on a follower, a leader and an observer', async () => {
    const expected = await members(apache)
    const got = await members('zabra')
    for (const [index, answers] of got.entries()) expectEqual(answers, expected[index]!)
  }, 600_000)
})
