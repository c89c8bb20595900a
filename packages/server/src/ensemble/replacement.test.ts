import { OpCode, writeAddWatchRequest, Writer } from '@zabra/protocol'
import { SeededRandom } from '@zabra/runtime'
import { nodeCryptography } from '@zabra/runtime/node'
import { syncCompression } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { Catalog, digestText, FolderTarget, loadBackup } from '../backup/index.ts'
import { encodeLearnerInfo, encodePacket, PacketType, PROTOCOL_VERSION } from '../core/zab/index.ts'
import type { ServerSettings } from '../settings/index.ts'
import { IS_LONG } from '../testing/random-runs.ts'
import { interleavePromises } from '../testing/many-connections.ts'
import { TestServer } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'
import { hideExtensions } from './testing/hide-extensions.ts'
import type { Member } from './member.ts'

/** Only each fourth write is tried, unless long tests are asked for. */
const STEP = IS_LONG ? 1 : 4
const SETTINGS = { adminRoleAdmin: ['ip:127.0.0.1'], adminEnabled: true }

/** Returns a snapshot of another server, with /new, a session and its ephemeral node. */
async function backup(settings: Partial<ServerSettings> = {}): Promise<Uint8Array> {
  const server = await TestServer.start({ adminRoleBackup: ['ip:127.0.0.1'], ...settings })
  const client = await server.connect()
  client.create(1, '/new', 0, 'restored')
  client.create(2, '/lock', 1)
  await server.untilIdle()
  const { bytes } = await server.http.request('/commands/snapshot')
  await server.stop()
  return bytes
}

const restore = (ensemble: Ensemble, id: number, body: Uint8Array) =>
  ensemble.member(id).http.request('/api/v1/restore', { method: 'POST', body })

const outcome = async (ensemble: Ensemble, id: number): Promise<Record<string, string>> =>
  JSON.parse((await ensemble.member(id).http.request('/api/v1/restore')).text) as Record<string, string>

async function untilRestored(ensemble: Ensemble, id: number): Promise<Record<string, string>> {
  let state = await outcome(ensemble, id)
  for (let turns = 0; state['state'] === 'running'; turns++) {
    if (turns > 1000) throw new Error(`Waited in vain:\n${ensemble.lines.slice(-60).join('\n')}`)
    await ensemble.advance(50)
    state = await outcome(ensemble, id)
  }
  return state
}

/** Returns what each running member serves: its digest, and whether it has the nodes of before and after. */
const contents = (ensemble: Ensemble): string[] =>
  ensemble.running.map((server) => {
    const { tree } = (server as Member).service!
    return [tree.has('/old') ? 'old' : '', tree.has('/new') ? 'new' : '', digestText(tree)].join(' ')
  })

/** Waits until all running members serve one state, and returns it as `old` or `new`. */
async function agreed(ensemble: Ensemble): Promise<string> {
  await ensemble.allServe()
  const client = await ensemble.client(ensemble.leader!)
  client.create(1, `/after-${ensemble.lines.length}`)
  await ensemble.receive(client, 1)
  const isOne = (): boolean => new Set(contents(ensemble)).size === 1
  await ensemble.until('equal trees', isOne, 10_000)
  return contents(ensemble)[0]!.replace(/ \S+$/, '').trim()
}

async function start(size = 3, settings: Partial<ServerSettings> = {}): Promise<Ensemble> {
  const ensemble = await Ensemble.start(size, { ...SETTINGS, ...settings })
  const client = await ensemble.client(ensemble.leader!)
  await ensemble.create(client, '/old')
  return ensemble
}

/** Connects to the leader as an observer of Apache ZooKeeper does. */
async function joinAsApache(ensemble: Ensemble, leader: number, serverId: number): Promise<void> {
  const connection = await ensemble.network.connect({ host: 'x', port: 2000 + leader })
  const data = encodeLearnerInfo({ serverId, protocolVersion: PROTOCOL_VERSION, configVersion: 0 })
  const writer = new Writer(64)
  encodePacket(writer, { type: PacketType.observerInfo, zxid: 0, data, auth: null })
  connection.write(writer.take())
}

/** Restarts a member so that it looks like one of Apache ZooKeeper, and waits until it follows the leader. */
async function restartAsApache(ensemble: Ensemble, id: number): Promise<void> {
  const restoreConnect = hideExtensions(ensemble)
  await ensemble.restart(id)
  restoreConnect()
}

/** Calls `action` when the leader makes its new files the data, before it does. */
function whenDecided(ensemble: Ensemble, id: number, action: () => unknown): void {
  const { disk } = ensemble.member(id)
  const replaceFile = disk.replaceFile.bind(disk)
  disk.replaceFile = async (path, bytes) => {
    if (path.endsWith('/replacement')) await action()
    return replaceFile(path, bytes)
  }
}

describe('a snapshot that is sent to the leader', () => {
  it('replaces the data of all members, ends sessions, and goes on above all zxids that clients have seen', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const clients = await Promise.all([1, 2, 3].map((id) => ensemble.client(id)))
    for (const client of clients)
      client.ask(5, OpCode.addWatch, (w) => writeAddWatchRequest(w, { path: '/old', mode: 1 }))
    await ensemble.advance(100)
    const before = ensemble.server(leader).stats().lastZxid
    expect(await restore(ensemble, leader, await backup())).toMatchObject({ status: 202 })
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    await ensemble.allServe()
    expect(clients.map(({ closed }) => closed)).toEqual([true, true, true])
    for (const id of [1, 2, 3]) {
      const resumed = await ensemble.client(id, { resume: clients[id - 1]!.session!, seen: BigInt(before) })
      expect(resumed.session?.timeOut).toBe(0)
    }
    expect(await agreed(ensemble)).toBe('new')
    expect(await ensemble.read(1, '/new', '/lock', '/old')).toEqual(['1:0', '2:-101', '3:-101'])
    expect(ensemble.server(1).stats().lastZxid).toBeGreaterThan(before)
    for (const id of [1, 2, 3]) await ensemble.restart(id)
    expect(await agreed(ensemble)).toBe('new')
  })

  it('reaches five members and all their clients: each gets a new session, no earlier zxid, and one line is audited', async () => {
    const ensemble = await start(5, { auditEnabled: true })
    const leader = ensemble.leader!
    const clients = []
    for (let index = 0; index < (IS_LONG ? 1000 : 25); index++) {
      const client = await ensemble.client((index % 5) + 1)
      client.ask(5, OpCode.addWatch, (w) => writeAddWatchRequest(w, { path: '/old', mode: 1 }))
      clients.push(client)
    }
    await ensemble.advance(100)
    const before = Math.max(...ensemble.running.map((server) => server.stats().lastZxid))
    expect(await restore(ensemble, leader, await backup())).toMatchObject({ status: 202 })
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
    expect(clients.filter(({ closed }) => !closed)).toEqual([])
    for (const [index, { session }] of clients.entries()) {
      const at = (index % 5) + 1
      expect(ensemble.server(at).stats().lastZxid).toBeGreaterThan(before)
      const resumed = await ensemble.client(at, { resume: session!, seen: BigInt(before) })
      expect(resumed.session?.timeOut).toBe(0)
    }
    expect(ensemble.lines.filter((line) => line.includes('/api/v1/restore'))).toHaveLength(1)
  })

  it('keeps the configuration of the ensemble', async () => {
    const ensemble = await start(3, { reconfigEnabled: true })
    const text = (): string => {
      const { tree } = (ensemble.server(1) as Member).service!
      return new TextDecoder().decode(tree.dataOf(tree.find('/zookeeper/config'))!)
    }
    const before = text()
    await restore(ensemble, ensemble.leader!, await backup())
    await untilRestored(ensemble, 3)
    expect(await agreed(ensemble)).toBe('new')
    expect(text()).toBe(before)
    for (const id of [1, 2, 3]) await ensemble.restart(id)
    expect(await agreed(ensemble)).toBe('new')
    expect(text()).toBe(before)
  })

  it('reaches an observer, and a member that was down', async () => {
    const ensemble = await start(4, { observers: [4] } as Partial<ServerSettings>)
    const leader = ensemble.leader!
    const down = leader === 1 ? 2 : 1
    await ensemble.member(down).crash()
    await restore(ensemble, leader, await backup())
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    await ensemble.startServing(down)
    expect(await agreed(ensemble)).toBe('new')
  })

  it.each([
    ['a follower', (ensemble: Ensemble) => (ensemble.leader === 1 ? 2 : 1), /Ask server \d, which leads/],
    [
      'a leader whose epoch is earlier than the backup',
      (ensemble: Ensemble) => ensemble.leader!,
      /Expected a backup of at most epoch/,
    ],
  ])('is refused by %s', async (_, choose, expected) => {
    const ensemble = await start()
    const id = choose(ensemble)
    const { settings } = ensemble.member(id)
    const later = await Ensemble.start(1, { adminRoleBackup: ['ip:127.0.0.1'] })
    for (let epoch = 0; epoch < 4; epoch++) await later.restart(1)
    await later.create(await later.client(1), '/later')
    const { bytes } = await later.member(1).http.request('/commands/snapshot')
    const { status, text } = await restore(ensemble, id, bytes)
    const state = status === 202 ? await untilRestored(ensemble, id) : { problem: text }
    expect(state['problem']).toMatch(expected)
    expect(settings.serverId).toBe(id)
    expect(await agreed(ensemble)).toBe('old')
  })

  it('is refused while a server of Apache ZooKeeper follows the leader', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const apache = leader === 1 ? 2 : 1
    await restartAsApache(ensemble, apache)
    expect(await restore(ensemble, leader, await backup())).toMatchObject({
      status: 409,
      text: expect.stringContaining(`got Apache ZooKeeper as server ${apache} at`) as unknown,
    })
    await ensemble.restart(apache)
    await restore(ensemble, leader, await backup())
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
  })

  it('is refused where the feature level of the backup is not finalized', async () => {
    const ensemble = await start()
    const post = async (level: string) =>
      ensemble.member(ensemble.leader!).http.request(`/api/v1/restore?level=${level}`, {
        method: 'POST',
        body: await backup(),
      })
    expect(await post('1')).toMatchObject({
      status: 409,
      text: expect.stringContaining('Run zabra cluster finalize --level 1 first.') as unknown,
    })
    for (const level of ['-1', '65536', 'x']) expect((await post(level)).status).toBe(400)
    expect(await agreed(ensemble)).toBe('old')
  })

  it('is refused while another one is restored, and when it is no snapshot', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const body = await backup()
    const answers = await Promise.all([restore(ensemble, leader, body), restore(ensemble, leader, body)])
    expect(answers.map(({ status }) => status)).toEqual([202, 409])
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    await ensemble.allServe()
    await restore(ensemble, ensemble.leader!, body.subarray(0, body.length - 9))
    expect(await untilRestored(ensemble, ensemble.leader!)).toMatchObject({ state: 'failed' })
    expect(await agreed(ensemble)).toBe('new')
  })
})

describe('a leader that replaces the data', () => {
  it('is elected with them when its disk takes longer than an election', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const { disk } = ensemble.member(leader)
    const syncFolder = disk.syncFolder.bind(disk)
    disk.syncFolder = async (path) => {
      await new Promise<void>((resolve) => {
        ensemble.clock.after(200, 'slow disk', resolve)
      })
      return syncFolder(path)
    }
    await restore(ensemble, leader, await backup())
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
  })

  it('closes all connections of its clients, a hundred in a turn, before it replaces its files', async () => {
    const ensemble = await start(3, { maxClientCnxns: 0, maxSessionTimeoutMs: 600_000 })
    const leader = ensemble.leader!
    for (let i = 0; i < 500; i++) await ensemble.client(leader, { timeout: 600_000 })
    const { connections } = (ensemble.server(leader) as Member).service!
    const left: number[] = []
    ensemble.member(leader).disk.injectFault = (_, path) => {
      if (!/restoring|incoming/.test(path)) left.push(connections.size)
      return undefined
    }
    expect(connections.size).toBeGreaterThanOrEqual(500)
    interleavePromises(ensemble.clock)
    await restore(ensemble, leader, await backup())
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(left.find((size) => size < 500)).toBe(0)
  })

  it('leads on where it has lost leadership and got it back since it began, and says that a later attempt may succeed', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const other = leader === 1 ? 2 : 1
    const { disk } = ensemble.member(leader)
    const space = disk.space.bind(disk)
    let calls = 0
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    disk.space = async () => {
      // The first look is that before the snapshot is received, the second that before it is written.
      if (++calls === 2) await held
      return space()
    }
    await restore(ensemble, leader, await backup())
    await ensemble.until('the tree', () => calls === 2)
    for (const [from, to] of [
      [leader, other],
      [other, leader],
    ] as const) {
      await ensemble.allServe()
      void (ensemble.server(from) as Member).transferLeadership(to)
      await ensemble.until(`server ${to} to lead`, () => ensemble.leader === to)
    }
    const { lookingCount } = (ensemble.server(leader) as Member).service!.stats.ensemble
    release()
    expect(await untilRestored(ensemble, leader)).toMatchObject({
      state: 'failed',
      again: true,
      problem: 'Another leader was elected. Try again.',
    })
    expect((ensemble.server(leader) as Member).service!.stats.ensemble.lookingCount).toBe(lookingCount)
    expect(await agreed(ensemble)).toBe('old')
  })

  it('refuses when a server of Apache ZooKeeper joins while they are written', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const apache = leader === 1 ? 2 : 1
    const { disk } = ensemble.member(leader)
    const openWrite = disk.openWrite.bind(disk)
    let isWriting = false
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    disk.openWrite = async (path, options) => {
      if (path.includes('incoming.')) {
        isWriting = true
        await held
      }
      return openWrite(path, options)
    }
    await restore(ensemble, leader, await backup())
    await ensemble.until('the file', () => isWriting)
    await restartAsApache(ensemble, apache)
    release()
    expect((await untilRestored(ensemble, leader))['problem']).toContain(
      `got Apache ZooKeeper as server ${apache} at`,
    )
    expect(await agreed(ensemble)).toBe('old')
  })

  it('ignores one that says it is a server of Apache ZooKeeper, with the id of a member, and does no more', async () => {
    const ensemble = await start(4, { observers: [4] } as Partial<ServerSettings>)
    const leader = ensemble.leader!
    const down = leader === 1 ? 2 : 1
    for (const id of [4, down]) {
      await ensemble.member(id).crash()
      await joinAsApache(ensemble, leader, id)
    }
    await ensemble.advance(100)
    expect((await restore(ensemble, leader, await backup())).status).toBe(202)
    await joinAsApache(ensemble, leader, 4)
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
  })

  it('says from which address a server of Apache ZooKeeper follows it without a proof, and what keeps others out', async () => {
    const ensemble = await start(4, { observers: [4] } as Partial<ServerSettings>)
    await restartAsApache(ensemble, 4)
    const { status, text } = await restore(ensemble, ensemble.leader!, await backup())
    expect(status).toBe(409)
    expect(text).toMatch(
      /server 4 at \S+:\d+: .*has not proved it: close the ports of members to other programs/,
    )
    expect(await agreed(ensemble)).toBe('old')
  })

  it('ignores a server of Apache ZooKeeper that no configuration names, since any program could say that it is one', async () => {
    const ensemble = await start(3, { reconfigEnabled: true })
    const leader = ensemble.leader!
    await joinAsApache(ensemble, leader, 9)
    await ensemble.advance(100)
    expect((await restore(ensemble, leader, await backup())).status).toBe(202)
    await joinAsApache(ensemble, leader, 10)
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
  })

  it('takes the old data again, and says so, when the others elect another one before it has installed the new', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const { disk } = ensemble.member(leader)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    const replaceFile = disk.replaceFile.bind(disk)
    disk.replaceFile = async (path, bytes) => {
      if (path.endsWith('/replacement')) await held
      return replaceFile(path, bytes)
    }
    await restore(ensemble, leader, await backup())
    await ensemble.until('another leader', () => ensemble.leader !== undefined && ensemble.leader !== leader)
    const client = await ensemble.client(ensemble.leader!)
    await ensemble.create(client, '/meanwhile')
    release()
    const { problem } = await untilRestored(ensemble, leader)
    expect(problem).toBe(
      `Server ${ensemble.leader} was elected with other data: nothing is replaced. Try again there.`,
    )
    expect(await agreed(ensemble)).toBe('old')
    expect(await ensemble.read(leader, '/meanwhile', '/old')).toEqual(['1:0', '2:0'])
  })

  it('says that a later attempt may succeed where another one was elected, and not of a snapshot that is damaged', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const body = await backup()
    await restore(ensemble, leader, body.subarray(0, body.length - 9))
    expect((await untilRestored(ensemble, leader))['again']).toBe(false)
    let release = (): void => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    whenDecided(ensemble, leader, () => held)
    await restore(ensemble, leader, body)
    await ensemble.until('another leader', () => ensemble.leader !== undefined && ensemble.leader !== leader)
    release()
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'failed', again: true })
    expect(await restore(ensemble, ensemble.leader!, body)).toMatchObject({ status: 202 })
    expect(await untilRestored(ensemble, ensemble.leader!)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
  })

  it('reports nothing before there is a leader, however long that takes', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const others = [1, 2, 3].filter((id) => id !== leader)
    whenDecided(ensemble, leader, async () => {
      for (const id of others) await ensemble.member(id).crash()
    })
    await restore(ensemble, leader, await backup())
    await ensemble.until('the crashes', () => ensemble.running.length === 1)
    await ensemble.advance(120_000)
    expect(await outcome(ensemble, leader)).toEqual({ state: 'running' })
    for (const id of others) await ensemble.member(id).start()
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
  })

  it('reports the new data where another member that has taken them is elected', async () => {
    const ensemble = await start(3, { forceSnapshotSync: true })
    const leader = ensemble.leader!
    const [taker, last] = [1, 2, 3].filter((id) => id !== leader) as [number, number]
    whenDecided(ensemble, leader, () => ensemble.member(last).crash())
    // The second member has the new data and their epoch; the leader never gets to know.
    const { disk } = ensemble.member(taker)
    const replaceFile = disk.replaceFile.bind(disk)
    let isTaken = false
    disk.replaceFile = async (path, bytes) => {
      await replaceFile(path, bytes)
      if (!path.endsWith('/currentEpoch') || isTaken) return
      isTaken = true
      ensemble.cut(leader)
    }
    await restore(ensemble, leader, await backup())
    await ensemble.until('the data at a second member', () => isTaken)
    await ensemble.member(last).start()
    await ensemble.until(
      'another leader',
      () => ensemble.leader !== undefined && ensemble.leader !== leader,
      60_000,
    )
    await ensemble.create(await ensemble.client(ensemble.leader!), '/meanwhile')
    ensemble.heal(leader)
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'done' })
    expect(await agreed(ensemble)).toBe('new')
  })

  it('does not say that it failed when its disk fails so that the files may be old or new', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const { disk } = ensemble.member(leader)
    let isDecided = false
    disk.injectFault = (_, path) => {
      isDecided ||= path.includes('/set-aside')
      return isDecided ? { code: 'EIO' } : undefined
    }
    await restore(ensemble, leader, await backup())
    expect(await untilRestored(ensemble, leader)).toMatchObject({
      state: 'unknown',
      problem: expect.stringContaining('EIO') as unknown,
    })
    disk.injectFault = () => undefined
    await ensemble.restart(leader)
    expect(await agreed(ensemble)).toMatch(/old|new/)
  })

  it('goes on with the old data when its disk refuses the new ones', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const { disk } = ensemble.member(leader)
    disk.injectFault = (call, path) =>
      call === 'write' && path.includes('incoming.') ? { code: 'ENOSPC' } : undefined
    await restore(ensemble, leader, await backup())
    expect(await untilRestored(ensemble, leader)).toMatchObject({ state: 'failed' })
    expect(await agreed(ensemble)).toBe('old')
    expect((await disk.list('/data/version-2')).filter((name) => /incoming|received/.test(name))).toEqual([])
  })

  it('reports them as the data when its disk fails after the new files are decided', async () => {
    const ensemble = await start()
    const leader = ensemble.leader!
    const { disk } = ensemble.member(leader)
    let faults = 0
    disk.injectFault = (_, path) =>
      path.includes('/set-aside') && faults++ === 0 ? { code: 'EIO' } : undefined
    await restore(ensemble, leader, await backup())
    const { state } = await untilRestored(ensemble, leader)
    expect([faults > 0, state, await agreed(ensemble)]).toEqual([true, 'done', 'new'])
  })

  it('of its own alone, does not say that it failed when the files may be old or new, and keeps both', async () => {
    const server = await TestServer.start(SETTINGS)
    const client = await server.connect()
    client.create(1, '/old')
    await server.untilIdle()
    let isDecided = false
    server.disk.injectFault = (_, path) => {
      isDecided ||= path.includes('/set-aside')
      return isDecided ? { code: 'EIO' } : undefined
    }
    const request = { method: 'POST', body: await backup() }
    expect((await server.http.request('/api/v1/restore', request)).status).toBe(202)
    await server.untilIdle()
    const { text } = await server.http.request('/api/v1/restore')
    expect(JSON.parse(text)).toMatchObject({
      state: 'unknown',
      problem: expect.stringContaining('EIO') as unknown,
    })
    server.disk.injectFault = () => undefined
    await server.restart()
    const reader = await server.connect()
    reader.read(1, OpCode.exists, '/new')
    await server.untilIdle()
    expect(reader.takeReceived()).toEqual(['1:0'])
    await server.stop()
  })

  it('is backed up by a snapshot of the new data, and audited once', async () => {
    const ensemble = await start(3, {
      auditEnabled: true,
      backupTargets: ['/shared/backup'],
      backupSchedule: 60_000,
    })
    await ensemble.advance(61_000)
    const leader = ensemble.leader!
    await restore(ensemble, leader, await backup())
    await untilRestored(ensemble, leader)
    await ensemble.advance(130_000)
    const store = {
      target: new FolderTarget('/shared/backup', { disk: ensemble.sharedDisk, random: new SeededRandom(1) }),
      cryptography: nodeCryptography,
      random: new SeededRandom(2),
      key: undefined,
    }
    const catalog = await Catalog.read(store)
    const chain = catalog.newestChain()
    const { tree } = await loadBackup(store, chain, chain.upTo, { compression: syncCompression })
    expect([tree.has('/old'), tree.has('/new')]).toEqual([false, true])
    const lines = ensemble.lines.filter((line) => line.includes('/api/v1/restore'))
    expect(lines).toHaveLength(1)
  })
})

describe('a leader that crashes while it replaces the data', () => {
  it('leaves all old or all new data, at whatever write of a member', async () => {
    const body = await backup()
    const outcomes: string[] = []
    for (let fails = 0; ; fails += STEP) {
      const ensemble = await start()
      const leader = ensemble.leader!
      let calls = 0
      let hasCrashed = false
      for (const [id, { disk }] of ensemble.members)
        disk.injectFault = () => {
          if (calls++ !== fails || hasCrashed) return undefined
          hasCrashed = true
          void ensemble.member(leader).crash()
          // A call of another member goes on.
          return id === leader ? { code: 'EIO' } : undefined
        }
      void restore(ensemble, leader, body)
      await ensemble.until(
        'the end',
        () => hasCrashed || ensemble.lines.some((line) => line.includes('were replaced by')),
      )
      if (!hasCrashed) break
      const others = await agreed(ensemble)
      await ensemble.startServing(leader)
      expect(await agreed(ensemble), `call ${fails}`).toBe(others)
      outcomes.push(others)
    }
    expect(outcomes).toContain('old')
    expect(outcomes).toContain('new')
  })
})
