import { SeededRandom } from '@zabra/runtime'
import { Writer } from '@zabra/protocol'
import { describe, expect, it } from 'vitest'
import { NO_CLUSTER, parseConfiguration, type FeatureState, type ServerId } from '../core/quorum/index.ts'
import {
  encodeFeatureReport,
  encodeFeatureState,
  encodeLearnerInfo,
  PacketType,
  PROTOCOL_VERSION,
  withExtension,
  writePacket,
} from '../core/zab/index.ts'
import { FEATURE_FILE, readFeatureState } from '../persistence/index.ts'
import { IS_LONG } from '../testing/random-runs.ts'
import { TestServer } from '../testing/test-server.ts'
import { Ensemble } from './testing/ensemble.ts'

const FOLDER = '/data/version-2'
/** Random histories. */
const HISTORIES = IS_LONG ? 100 : 3
const operators = { adminRoleOperate: ['ip:127.0.0.1'] }
const FINAL: FeatureState = { finalized: 1, proposed: 0 }
const PROPOSED: FeatureState = { finalized: 0, proposed: 1 }
const NONE: FeatureState = { finalized: 0, proposed: 0 }

interface Answer {
  readonly status: number
  readonly text: string
}

const stateOf = (ensemble: Ensemble, id: ServerId): Promise<FeatureState> =>
  readFeatureState(ensemble.member(id).disk, FOLDER)

const states = (ensemble: Ensemble): Promise<FeatureState[]> =>
  Promise.all([...ensemble.members.keys()].map((id) => stateOf(ensemble, id)))

async function request(ensemble: Ensemble, id: ServerId, method: 'GET' | 'POST', body = ''): Promise<Answer> {
  let answer: Answer | undefined
  void ensemble
    .member(id)
    .http.request('/api/v1/cluster/finalize', method === 'GET' ? {} : { method, body })
    .then((got) => (answer = got))
  await ensemble.until('an answer', () => answer !== undefined)
  return answer!
}

const finalize = (ensemble: Ensemble, body?: string): Promise<Answer> =>
  request(ensemble, ensemble.leader!, 'POST', body)

/** Makes a member say nothing of itself, as one of Apache ZooKeeper. Returns a function that ends it. */
function disguise(ensemble: Ensemble, id: ServerId, change: (bytes: Buffer, at: number) => void): () => void {
  ensemble.rewrite = (from, bytes) => {
    if (from !== id) return bytes
    const changed = Buffer.from(bytes)
    for (let at = changed.indexOf('_zabra'); at !== -1; at = changed.indexOf('_zabra', at + 1))
      change(changed, at)
    return changed
  }
  return () => (ensemble.rewrite = (_, bytes) => bytes)
}

const asApache = (bytes: Buffer, at: number): void => void (bytes[at] = 0)
const asLevelZero = (bytes: Buffer, at: number): void => void bytes.writeUInt16BE(0, at + 6)

describe('an ensemble', () => {
  it('has no level at first, and finalizes one on all members when it is asked to', async () => {
    const ensemble = await Ensemble.start(4, { observers: [4], ...operators })
    expect(await states(ensemble)).toEqual([NONE, NONE, NONE, NONE])
    const answer = await finalize(ensemble)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { level: 1, finalized: 1 }])
    await ensemble.advance(100)
    expect(await states(ensemble)).toEqual([FINAL, FINAL, FINAL, FINAL])
    for (const id of [1, 2, 3, 4])
      expect(ensemble.member(id).disk.paths()).toContain(`${FOLDER}/${FEATURE_FILE}`)
  })

  it('finalizes a level on observers that follow an observer master', async () => {
    const ensemble = await Ensemble.start(5, { observers: [4, 5], observerMasterPort: 5000, ...operators })
    expect((await finalize(ensemble)).status).toBe(200)
    await ensemble.advance(100)
    expect(await states(ensemble)).toEqual([FINAL, FINAL, FINAL, FINAL, FINAL])
  })

  it('answers the second request as the first', async () => {
    const ensemble = await Ensemble.start(3, operators)
    const first = await finalize(ensemble)
    expect(await finalize(ensemble)).toMatchObject({ status: 200, text: first.text })
    expect(await finalize(ensemble, '{"level":1}')).toMatchObject({ status: 200, text: first.text })
  })

  it('keeps the level over restarts, and gives it to a member that lost its disk before it has its data', async () => {
    const ensemble = await Ensemble.start(3, operators)
    await finalize(ensemble)
    const lost = ensemble.leader! === 1 ? 2 : 1
    await ensemble.member(lost).crash()
    const { disk } = ensemble.member(lost)
    for (const path of disk.paths()) if (path.startsWith(FOLDER)) await disk.remove(path)
    await ensemble.startServing(lost)
    expect(await stateOf(ensemble, lost)).toEqual(FINAL)
    await ensemble.restart(ensemble.leader!)
    await ensemble.allServe()
    expect(await states(ensemble)).toEqual([FINAL, FINAL, FINAL])
  })

  it('shows what finalizing would do, and changes nothing', async () => {
    const ensemble = await Ensemble.start(3, operators)
    const { status, text } = await request(ensemble, ensemble.leader!, 'GET')
    const members = [1, 2, 3].map((id) => ({ id, release: 1, obstacle: null }))
    expect([status, JSON.parse(text)]).toEqual([200, { level: 1, finalized: 0, members, obstacles: [] }])
    expect(await states(ensemble)).toEqual([NONE, NONE, NONE])
  })

  it('names the leader where another member is asked', async () => {
    const ensemble = await Ensemble.start(3, operators)
    const follower = ensemble.leader === 1 ? 2 : 1
    for (const method of ['GET', 'POST'] as const)
      expect(await request(ensemble, follower, method)).toMatchObject({
        status: 409,
        text: expect.stringContaining(`Ask server ${ensemble.leader}, which leads.`) as unknown,
      })
  })

  it.each(['{"level":0}', '{"level":1.5}', '{"level":65536}', '{"level":"1"}', '[]'])(
    'refuses the body %s',
    async (body) => {
      const ensemble = await Ensemble.start(1, operators)
      expect(await finalize(ensemble, body)).toMatchObject({ status: 400 })
    },
  )
})

describe('a level is not finalized', () => {
  async function refused(ensemble: Ensemble, reason: string, body?: string): Promise<void> {
    const before = await states(ensemble)
    const answer = await finalize(ensemble, body)
    expect([answer.status, answer.text]).toEqual([409, expect.stringContaining(reason)])
    expect(await states(ensemble)).toEqual(before)
  }

  it('while a member is away', async () => {
    const ensemble = await Ensemble.start(3, operators)
    const away = ensemble.leader === 1 ? 2 : 1
    await ensemble.member(away).crash()
    await ensemble.advance(100)
    await refused(ensemble, `server ${away} is away`)
  })

  it('while an observer is away', async () => {
    const ensemble = await Ensemble.start(4, { observers: [4], ...operators })
    await ensemble.member(4).crash()
    await ensemble.advance(100)
    await refused(ensemble, 'server 4 is away')
  })

  it('while a member runs Apache ZooKeeper', async () => {
    const ensemble = new Ensemble(3, operators)
    disguise(ensemble, 1, asApache)
    for (const id of [3, 2, 1]) await ensemble.member(id).start()
    await ensemble.allServe()
    expect(ensemble.leader).not.toBe(1)
    await refused(ensemble, 'server 1 runs Apache ZooKeeper')
  })

  it('while a member has a lower level', async () => {
    const ensemble = new Ensemble(3, operators)
    disguise(ensemble, 1, asLevelZero)
    for (const id of [3, 2, 1]) await ensemble.member(id).start()
    await ensemble.allServe()
    await refused(ensemble, 'server 1 runs Apache ZooKeeper, or a release from before feature levels')
  })

  it('above that of the members', async () => {
    const ensemble = await Ensemble.start(3, operators)
    await refused(
      ensemble,
      'server 2 has feature level 1: install a release of level 2 or later on it',
      '{"level":2}',
    )
  })
})

describe('a finalized ensemble', () => {
  async function finalized(): Promise<{ ensemble: Ensemble; former: ServerId }> {
    const ensemble = await Ensemble.start(3, operators)
    await finalize(ensemble)
    await ensemble.advance(100)
    const former = ensemble.leader === 1 ? 2 : 1
    await ensemble.member(former).crash()
    return { ensemble, former }
  }

  it.each([
    ['runs Apache ZooKeeper', asApache],
    ['runs a release of feature level 0', asLevelZero],
  ])('refuses a member that %s, with one line of each other member in 10 s', async (what, change) => {
    const { ensemble, former } = await finalized()
    const end = disguise(ensemble, former, change)
    const before = ensemble.lines.length
    await ensemble.member(former).start()
    await ensemble.advance(9000)
    expect(ensemble.server(former).serving).toBe(false)
    const lines = ensemble.lines.slice(before).filter((line) => line.includes(`server ${former} ${what}`))
    expect(lines.length).toBeGreaterThan(0)
    expect(lines.length).toBeLessThanOrEqual(4)
    expect(lines[0]).toContain('Install a release of Zabra of level 1 or later on it')
    end()
    await ensemble.restart(former)
  })

  it('does not follow a leader of Apache ZooKeeper', async () => {
    const { ensemble, former } = await finalized()
    for (const id of [1, 2, 3]) if (id !== former) await ensemble.member(id).crash()
    // Two members on whose folders Apache ZooKeeper was started are a quorum; it reads no levels.
    for (const id of [1, 2, 3])
      if (id !== former) await ensemble.member(id).disk.remove(`${FOLDER}/${FEATURE_FILE}`)
    const others = [1, 2, 3].filter((id) => id !== former)
    ensemble.rewrite = (from, bytes) => {
      if (from === former) return bytes
      const changed = Buffer.from(bytes)
      for (let at = changed.indexOf('_zabra'); at !== -1; at = changed.indexOf('_zabra')) changed[at] = 0
      return changed
    }
    for (const id of others) await ensemble.member(id).start()
    await ensemble.allServe()
    await ensemble.member(former).start()
    await ensemble.advance(10_000)
    expect(ensemble.server(former).serving).toBe(false)
    expect(ensemble.lines.some((line) => /warn.*runs Apache ZooKeeper, and this ensemble/.test(line))).toBe(
      true,
    )
  })

  it('lets a new server join, which takes the level', async () => {
    const ensemble = await Ensemble.start(3, { ...operators, reconfigEnabled: true, skipAcl: true })
    await finalize(ensemble)
    const lines = [1, 2, 3].map((id) => `server.${id}=127.0.0.1:${2000 + id}:${3000 + id}:participant`)
    const joining = 'server.4=127.0.0.1:2004:3004:observer'
    await ensemble.join(4, parseConfiguration([...lines, joining].join('\n')))
    await ensemble.until('server 4 to serve', () => ensemble.server(4).serving)
    expect(await stateOf(ensemble, 4)).toEqual(FINAL)
  })
})

describe('a server at an address of a member', () => {
  it.each([
    ['a follower', PacketType.followerInfo],
    ['an observer', PacketType.observerInfo],
  ])('that claims to be %s raises no level, whatever it says', async (_, type) => {
    const ensemble = await Ensemble.start(4, { observers: [4], ...operators })
    await ensemble.member(1).crash()
    await ensemble.advance(100)
    const connection = await ensemble.network.connect({ host: 'x', port: 2000 + ensemble.leader! })
    const features = { finalized: 1, proposed: 9 }
    const extension = { level: 9, sharesSecret: false, hasData: true, cluster: NO_CLUSTER, features }
    const info = { serverId: 1, protocolVersion: PROTOCOL_VERSION, configVersion: 0 }
    const send = (packet: number, zxid: number, data: Uint8Array | null): void => {
      const writer = new Writer(256)
      writePacket(writer, packet, zxid, data)
      connection.write(writer.take())
    }
    send(type, 0, withExtension(encodeLearnerInfo(info), extension))
    await ensemble.untilIdle()
    const said = [1, 2, 3, 4].map((id) => ({ id, release: 9, stored: features }))
    send(PacketType.featureLevel, -1, encodeFeatureReport(said))
    send(PacketType.featureLevel, -1, encodeFeatureState({ finalized: 9, proposed: 0 }))
    await ensemble.advance(1000)
    expect(await states(ensemble)).toEqual([NONE, NONE, NONE, NONE])
    expect((await finalize(ensemble)).status).toBe(409)
  })
})

describe('a server whose folder was finalized above its release', () => {
  it.each(['2\n', '1 proposed 2\n'])('does not start on %j, and says what to do', async (text) => {
    const server = await TestServer.start()
    await server.stop()
    server.disk.putFile(`${FOLDER}/${FEATURE_FILE}`, new TextEncoder().encode(text))
    await expect(server.restart()).rejects.toThrow(
      /Expected data of feature level 1 or below.*at level 2 in .*Install a release of feature level 2 or later/,
    )
  })

  it('leaves the files as they are, also those that this release cannot read', async () => {
    const server = await TestServer.start()
    await server.stop()
    const { disk } = server
    disk.putFile(`${FOLDER}/${FEATURE_FILE}`, new TextEncoder().encode('2\n'))
    const data = (await disk.list(FOLDER)).find((name) => /^(snapshot|log)\./.test(name))!
    disk.putFile(`${FOLDER}/${data}`, new TextEncoder().encode('the format of a later release'))
    const filesOf = async (): Promise<string[]> =>
      Promise.all(
        (await disk.list(FOLDER))
          .toSorted()
          .map(async (name) => `${name} ${(await disk.readFile(`${FOLDER}/${name}`)).join()}`),
      )
    const before = await filesOf()
    await expect(server.restart()).rejects.toThrow('Install a release of feature level 2 or later')
    expect(await filesOf()).toEqual(before)
  })
})

describe('a standalone server', () => {
  it('finalizes its level alone', async () => {
    const server = await TestServer.start(operators)
    const { status } = await server.http.request('/api/v1/cluster/finalize', { method: 'POST', body: '' })
    expect(status).toBe(200)
    expect(await readFeatureState(server.disk, FOLDER)).toEqual(FINAL)
    await server.stop()
  })
})

describe('a crash while a level is finalized', () => {
  /** How many of its writes the leader and the two others carry out: the first stores the level as proposed, the second as final. */
  const WRITES = [
    [0, 0, 0],
    [1, 0, 0],
    [1, 1, 0],
    [1, 1, 1],
    [2, 0, 0],
    [2, 1, 0],
    [2, 1, 1],
    [2, 2, 1],
  ] as const

  async function play(allowed: readonly number[], crashes: 'all members' | 'the leader'): Promise<void> {
    const ensemble = await Ensemble.start(3, operators)
    const leader = ensemble.leader!
    const others = [1, 2, 3].filter((id) => id !== leader)
    for (const [index, id] of [leader, ...others].entries()) {
      const { disk } = ensemble.member(id)
      const replaceFile = disk.replaceFile.bind(disk)
      let writes = 0
      disk.replaceFile = (path, bytes) =>
        path.endsWith(FEATURE_FILE) && ++writes > allowed[index]!
          ? new Promise(() => {})
          : replaceFile(path, bytes)
    }
    void ensemble.member(leader).http.request('/api/v1/cluster/finalize', { method: 'POST', body: '' })
    await ensemble.advance(200)
    const crashed = crashes === 'all members' ? [1, 2, 3] : [leader]
    for (const id of [1, 2, 3]) await ensemble.member(id).crash()
    for (const { disk } of ensemble.members.values()) Reflect.deleteProperty(disk, 'replaceFile')
    const stored = await states(ensemble)
    const isFinal = stored.some(({ finalized }) => finalized === 1)
    if (isFinal) for (const { finalized, proposed } of stored) expect(finalized + proposed).toBe(1)

    // Those that have not crashed elect another leader first.
    for (const id of [1, 2, 3])
      if (crashes === 'all members' || id !== leader) await ensemble.member(id).start()
    await ensemble.allServe()
    for (const id of crashed) if (ensemble.member(id).server === undefined) await ensemble.startServing(id)
    await ensemble.advance(2000)
    const after = await states(ensemble)
    expect(after).toEqual([after[0], after[0], after[0]])
    expect(after[0]!.proposed).toBe(0)
    if (isFinal) expect(after[0]).toEqual(FINAL)
  }

  for (const crashes of ['all members', 'the leader'] as const)
    it.each(WRITES)(
      `after %i, %i and %i writes leaves it finalized nowhere or everywhere once they are connected (${crashes})`,
      (...allowed) => play(allowed, crashes),
    )

  it('of a follower is no obstacle once it is back', async () => {
    const ensemble = await Ensemble.start(3, operators)
    const follower = ensemble.leader === 1 ? 2 : 1
    const { disk } = ensemble.member(follower)
    const replaceFile = disk.replaceFile.bind(disk)
    disk.replaceFile = (path, bytes) =>
      path.endsWith(FEATURE_FILE) ? new Promise(() => {}) : replaceFile(path, bytes)
    const answer = await finalize(ensemble)
    expect([answer.status, JSON.parse(answer.text)]).toEqual([
      202,
      { level: 1, finalized: 0, waitsFor: [follower] },
    ])
    expect((await states(ensemble)).toSorted((a, b) => a.proposed - b.proposed)).toEqual([
      NONE,
      PROPOSED,
      PROPOSED,
    ])
    disk.replaceFile = replaceFile
    await ensemble.restart(follower)
    await ensemble.advance(2000)
    expect(await states(ensemble)).toEqual([FINAL, FINAL, FINAL])
  })

  it(`or a partition is never the cause of a mixture, in ${HISTORIES} random histories`, async () => {
    for (let seed = 1; seed <= HISTORIES; seed++) {
      const random = new SeededRandom(seed)
      const ensemble = await Ensemble.start(4, { observers: [4], ...operators })
      const ids = [...ensemble.members.keys()]
      const cutOff = new Set<ServerId>()
      ensemble.isCut = (from, port) => cutOff.has(from) || cutOff.has(port % 1000)
      const crashOrPartition = async (id: ServerId): Promise<void> => {
        const member = ensemble.member(id)
        if (member.server === undefined) return member.start()
        if (cutOff.delete(id)) return undefined
        if (random.below(2) === 0) return member.crash()
        // Its connections stay open, and nothing arrives by them any more.
        cutOff.add(id)
        return member.silence()
      }
      for (let step = 0; step < 30; step++) {
        // A leader that was cut off does not know it yet.
        const leaders = ids.filter((id) => ensemble.member(id).server?.role === 'leading')
        for (const id of leaders)
          if (random.below(2) === 0)
            void ensemble
              .member(id)
              .http.request('/api/v1/cluster/finalize', { method: 'POST', body: '' })
              .catch(() => {})
        // The steps of a finalization take some turns each.
        for (let turns = random.below(40); turns > 0; turns--) await Promise.resolve()
        await crashOrPartition(ids[random.below(ids.length)]!)
        for (let left = random.below(60); left > 0; left--) await ensemble.advance(50)
        const stored = await states(ensemble)
        if (stored.some(({ finalized }) => finalized === 1))
          for (const { finalized, proposed } of stored) expect(finalized + proposed, `seed ${seed}`).toBe(1)
      }
      cutOff.clear()
      // Connections of members that were cut off stay silent.
      for (const id of ids) await ensemble.member(id).crash()
      for (const id of ids) await ensemble.member(id).start()
      await ensemble.allServe(60_000)
      await ensemble.advance(2000)
      const [first, ...others] = await states(ensemble)
      expect(others, `seed ${seed}`).toEqual([first, first, first])
      expect(first!.proposed, `seed ${seed}`).toBe(0)
    }
  })
})
