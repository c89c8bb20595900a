import { holdWrites, ManualPlatform } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { createServer } from '../server.ts'
import { defaults, type ServerSettings } from '../settings/index.ts'
import { TestServer } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

type Probe = (path: string) => Promise<{ readonly status: number; readonly text: string }>

/** A server in one role and condition. */
interface Arranged {
  readonly probe: Probe
  readonly end?: () => Promise<unknown>
}

async function alone(
  settings: Partial<ServerSettings>,
  arrange: (server: TestServer) => unknown = () => {},
): Promise<Arranged> {
  const server = await TestServer.start({ adminRoleOperate: ['ip:127.0.0.1'], ...settings })
  await arrange(server)
  return { probe: (path) => server.http.request(path), end: () => server.stop() }
}

/** Starts three voters and the observer 4. `arrange` returns the id of the member to probe. */
async function member(
  arrange: (ensemble: Ensemble, leader: number, follower: number) => number | Promise<number>,
  settings: Partial<ServerSettings> = {},
): Promise<Arranged> {
  const ensemble = await Ensemble.start(4, { observers: [4], ...settings })
  const leader = ensemble.leader!
  const id = await arrange(ensemble, leader, leader === 1 ? 2 : 1)
  return { probe: (path) => ensemble.member(id).http.request(path) }
}

/** Starts a server whose disk or network holds it up. Its port for probes is open. */
async function starting(hold: (platform: ManualPlatform) => () => void): Promise<Arranged> {
  const platform = new ManualPlatform()
  const release = hold(platform)
  const server = createServer(defaults({ dataDir: '/data', clientPort: 2181 }), platform.platform())
  await platform.untilIdle()
  const end = async (): Promise<void> => {
    release()
    await (await server).close()
  }
  return { probe: (path) => platform.http.request(path), end }
}

function holdPorts({ network }: ManualPlatform): () => void {
  const listen = network.listen.bind(network)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  network.listen = async (...parameters) => {
    await held
    return listen(...parameters)
  }
  return release
}

const noSpace = { code: 'ENOSPC' } as const

function fill(ensemble: Ensemble, id: number): void {
  ensemble.member(id).disk.injectFault = (call) => (call === 'write' ? noSpace : undefined)
}

async function loseQuorum(ensemble: Ensemble, survivor: number): Promise<number> {
  for (const [id, one] of ensemble.members) if (id !== survivor && id !== 4) await one.crash()
  await ensemble.until('the loss of the leader', () => ensemble.server(survivor).role !== 'following')
  return survivor
}

/**
 * Restarts a follower, whose leader sends a snapshot of a large tree, and holds the writes of that. Returns its id and a function that lets
 * it go on.
 */
async function receiveSnapshot(
  ensemble: Ensemble,
  leader: number,
  id: number,
): Promise<[number, () => void]> {
  const { disk } = ensemble.member(id)
  await ensemble.member(id).crash()
  const client = await ensemble.client(leader)
  for (let xid = 1; xid <= 20; xid++) client.create(xid, `/large-${xid}`, 0, 'x'.repeat(500_000))
  await ensemble.receive(client, 20)
  let release = (): void => {}
  const held = new Promise<void>((resolve) => (release = resolve))
  let isHeld = false
  const { length } = ensemble.lines
  disk.beforeWrite = async () => {
    isHeld ||= ensemble.lines.slice(length).some((line) => line.includes('"how":"snap"'))
    if (isHeld) await held
  }
  await ensemble.member(id).start()
  await ensemble.until('a snapshot', () => isHeld)
  return [id, release]
}

/** Stops a server that drains first, and leaves it in between. */
async function stopping(): Promise<Arranged> {
  const server = await TestServer.start({ stopDrainMs: 1000 })
  const closed = server.server.close()
  await server.untilIdle()
  const end = async (): Promise<void> => {
    await server.advance(1000)
    await closed
  }
  return { probe: (path) => server.http.request(path), end }
}

/** The statuses in this order: /livez, /startupz, /readyz, /readyz?for=reads, /ready; then the checks that fail. */
type Row = readonly [condition: string, statuses: string, failed: string, arrange: () => Promise<Arranged>]

const rows: readonly Row[] = [
  [
    'a server that reads its data',
    '200 503 503 503 503',
    'recovery',
    () => starting(({ disk }) => holdWrites(disk)),
  ],
  ['a server whose ports are not open yet', '200 503 503 503 503', 'listeners', () => starting(holdPorts)],
  ['a standalone server', '200 200 200 200 200', '', () => alone({})],
  [
    'a standalone server with a full disk',
    '200 200 503 200 503',
    'log',
    () =>
      alone({}, async (server) => {
        server.disk.injectFault = (call) => (call === 'write' ? noSpace : undefined)
        await server.client()
      }),
  ],
  [
    'a standalone server that drains',
    '200 200 503 503 503',
    'draining',
    () => alone({}, ({ http }) => http.request('/api/v1/drain', { method: 'POST', body: '' })),
  ],
  ['a server that stops', '200 200 503 503 503', 'draining', stopping],
  [
    'a server that cannot trust its state',
    '503 200 503 503 503',
    'data',
    () =>
      alone({}, async (server) => {
        server.disk.injectFault = (call) => (call === 'sync' ? { code: 'EIO' } : undefined)
        await server.client()
      }),
  ],
  ['a leader', '200 200 200 200 200', '', () => member((_, leader) => leader)],
  ['a follower', '200 200 200 200 200', '', () => member((_, __, follower) => follower)],
  ['an observer', '200 200 200 200 200', '', () => member(() => 4)],
  [
    'a leader with leaderServes=no',
    '200 200 503 503 503',
    'serves',
    async () => {
      const ensemble = new Ensemble(3, { leaderServes: false })
      for (const one of ensemble.members.values()) await one.start()
      await ensemble.until('two to serve', () => ensemble.running.filter((s) => s.serving).length === 2)
      const [leader] = [...ensemble.members.values()].filter(({ server }) => server!.role === 'leading')
      return { probe: (path) => leader!.http.request(path) }
    },
  ],
  [
    'a leader that has lost its followers two ticks ago',
    '200 200 503 503 503',
    'quorum',
    () =>
      member(async (ensemble, leader) => {
        for (const one of ensemble.members.values()) one.silence()
        await ensemble.advance(3500)
        return leader
      }),
  ],
  [
    'a follower that has not heard its leader for two ticks',
    '200 200 503 503 503',
    'leader',
    () =>
      member(async (ensemble, leader, follower) => {
        ensemble.member(leader).silence()
        ensemble.member(follower).silence()
        await ensemble.advance(3500)
        return follower
      }),
  ],
  [
    'an observer that has not heard its leader for two ticks',
    '200 200 503 503 503',
    'leader',
    () =>
      member(async (ensemble) => {
        ensemble.member(4).silence()
        await ensemble.advance(3500)
        return 4
      }),
  ],
  [
    'a voter without a quorum',
    '200 200 503 503 503',
    'no-leader',
    () => member((ensemble, _, follower) => loseQuorum(ensemble, follower)),
  ],
  [
    'an observer without a leader',
    '200 200 503 503 503',
    'no-leader',
    () =>
      member(async (ensemble, _, follower) => {
        await loseQuorum(ensemble, follower)
        await ensemble.until('an observer without a leader', () => ensemble.server(4).role === 'looking')
        return 4
      }),
  ],
  [
    'a voter that serves read-only clients',
    '200 200 503 200 503',
    'read-only',
    () =>
      member(
        async (ensemble, _, follower) => {
          await loseQuorum(ensemble, follower)
          await ensemble.until('a read-only server', () => ensemble.server(follower).role === 'read-only')
          return follower
        },
        { readOnlyModeEnabled: true },
      ),
  ],
  [
    'a follower with a full disk',
    '200 200 503 503 503',
    'no-leader',
    () =>
      member(async (ensemble, leader, follower) => {
        const client = await ensemble.client(leader)
        fill(ensemble, follower)
        expect(await ensemble.create(client, '/a')).toBe('1:0')
        return follower
      }),
  ],
  [
    'a follower that receives a snapshot of a large tree',
    '200 200 503 503 503',
    'sync',
    () =>
      member(async (ensemble, leader, follower) => (await receiveSnapshot(ensemble, leader, follower))[0], {
        forceSnapshotSync: true,
      }),
  ],
  [
    'a member that was cut off and has its leader again',
    '200 200 200 200 200',
    '',
    () =>
      member(async (ensemble, _, follower) => {
        await ensemble.restart(follower)
        return follower
      }),
  ],
]

it('a follower that receives a snapshot says how far it is, and is ready once it has the tree', async () => {
  const ensemble = await Ensemble.start(3, { forceSnapshotSync: true })
  const leader = ensemble.leader!
  const [id, release] = await receiveSnapshot(ensemble, leader, leader === 1 ? 2 : 1)
  const ready = (query = ''): Promise<{ status: number; text: string }> =>
    ensemble.member(id).http.request(`/readyz${query}`)
  expect((await ready('?verbose')).text).toMatch(
    new RegExp(`^\\[-\\]sync SNAP 99 % from server ${leader}, \\d{6,} bytes so far$`, 'm'),
  )
  release()
  await ensemble.until('a synced follower', () => ensemble.server(id).serving)
  expect(await ready()).toMatchObject({ status: 200 })
  expect(await ensemble.read(id, '/large-20')).toEqual(['1:0'])
})

it('a server that starts says in which phase it is, before it knows how long that takes', async () => {
  for (const [hold, phase] of [
    [({ disk }: ManualPlatform) => holdWrites(disk), 'snapshot'],
    [holdPorts, 'ports'],
  ] as const) {
    const { probe, end } = await starting(hold)
    const { text } = await probe('/startupz')
    expect(JSON.parse(text)).toEqual({ phase, percent: null, etaSeconds: null })
    await end!()
  }
})

it('probes write nothing to the log and change nothing', async () => {
  const server = await TestServer.start()
  await server.untilIdle()
  const { length } = server.logLines
  for (let second = 0; second < 60; second++) {
    for (let probe = 0; probe < 20; probe++) {
      for (const path of ['/readyz', '/livez']) expect((await server.http.request(path)).status).toBe(200)
      // Probes come in later iterations of the event loop, as from a network.
      await server.untilIdle()
    }
    await server.advance(1000)
  }
  expect(server.logLines.slice(length)).toEqual([])
  await server.stop()
})

describe('the health of', () => {
  it.each(rows)('%s is %s, for the reason "%s"', async (_, statuses, failed, arrange) => {
    const { probe, end } = await arrange()
    const answers = []
    for (const path of ['/livez', '/startupz', '/readyz', '/readyz?for=reads', '/ready'])
      answers.push(await probe(path))
    const { text } = await probe('/readyz')
    const { checks } = JSON.parse(answers.at(-1)!.text) as {
      readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly detail: string }[]
    }
    await end?.()
    expect(answers.map(({ status }) => status).join(' ')).toBe(statuses)
    expect(text).toBe(failed === '' ? 'ok\n' : `${failed}\n`)
    const wrong = checks.filter(({ ok }) => !ok)
    expect(wrong.map(({ name }) => name).join(' ')).toBe(failed)
    expect(wrong.map(({ detail }) => detail)).not.toContain('')
  })
})
